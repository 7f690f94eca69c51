"""Who decides which nodes a simulated job has: ours and its rivals."""
