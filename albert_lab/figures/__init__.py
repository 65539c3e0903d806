"""What each figure shows, and how all of them look."""
