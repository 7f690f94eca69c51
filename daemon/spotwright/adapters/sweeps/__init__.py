"""Where many runs are done: in processes of this machine, or on a Ray cluster."""
