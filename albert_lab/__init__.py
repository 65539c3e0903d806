"""Ablation studies of encoder pre-training: ALBERT's experiments at any scale."""

__version__ = "0.1.0"
