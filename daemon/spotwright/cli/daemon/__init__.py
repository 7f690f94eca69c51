"""The daemon put together and run."""
