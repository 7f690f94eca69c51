"""Domain values as messages and back."""
