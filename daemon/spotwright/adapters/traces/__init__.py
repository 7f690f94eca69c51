"""Availability campaigns and price histories, read from files."""
