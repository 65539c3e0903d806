"""Downstream tasks: their files, scores and fine-tuning."""
