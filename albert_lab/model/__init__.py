"""One encoder for ALBERT and BERT: its modules, its shape, and its tensor names in the transformers
layout.
"""
