"""What the daemon can take: agents, storms and questions, with its CPU seconds beside the wall's."""
