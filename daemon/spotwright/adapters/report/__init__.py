"""The report of a plan: one self-contained HTML page for those who decide."""
