"""How fast the exact search is, what it proves, and what its rivals find on the same problems."""
