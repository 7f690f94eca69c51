"""What the agent costs its host, and how fast it is."""
