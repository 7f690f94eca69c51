"""Tells others over HTTP what is decided about jobs."""
