"""Typed clients of the daemon."""
