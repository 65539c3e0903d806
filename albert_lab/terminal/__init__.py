"""What is seen in a terminal: the live view of a study, and its last screen."""
