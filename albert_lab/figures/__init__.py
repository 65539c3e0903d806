"""Figures: their content, their style, and their files."""
