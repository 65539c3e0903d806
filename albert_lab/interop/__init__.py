"""Folders of other tools: export, import, lint, load."""
