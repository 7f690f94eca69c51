"""What can be read on a host, what not, and why."""
