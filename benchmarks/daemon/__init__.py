"""What the daemon can take: agents, storms and questions, CPU seconds beside wall."""
