"""Worker processes that stay warm, for work that must not run on an event loop."""
