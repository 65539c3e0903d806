"""Model folders of other tools: export, import, lint, load."""
