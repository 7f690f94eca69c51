"""Pictures as PNG, by matplotlib."""
