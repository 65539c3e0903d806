"""One encoder for ALBERT and BERT: its modules, what it costs, and its place in the transformers layout."""
