"""JobService: plans being carried out."""
