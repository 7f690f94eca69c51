"""What the daemon counts, for Prometheus."""
