"""The measures on held-out text: what is asked, of which pairs, and what a floor answers."""
