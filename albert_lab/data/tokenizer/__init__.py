"""Tokenizers: one interface, two kinds of model file, and the training of one."""
