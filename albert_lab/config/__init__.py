"""The configuration of a run: composed, checked and frozen."""
