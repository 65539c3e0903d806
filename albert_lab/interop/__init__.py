"""Model folders of transformers: export, import, evaluation, and opening in Python."""
