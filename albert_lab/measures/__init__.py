"""The measures on held-out text, each a file: what is asked, of which pairs, and what a floor answers."""
