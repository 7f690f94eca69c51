"""Job files: YAML with human units on one side, domain values on the other."""
