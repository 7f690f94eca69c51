"""What was read, told to the daemon: batches, the spool, and the session."""
