"""One run: its identity and folder, its state, the process that trains it, its record."""
