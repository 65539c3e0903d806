"""One run: its identity and folder, its state, the process that makes it, its record."""
