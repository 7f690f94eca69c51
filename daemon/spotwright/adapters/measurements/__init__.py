"""Measurements files: CSV, one configuration per row."""
