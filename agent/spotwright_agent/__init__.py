"""The agent on each GPU host: what the hardware does, told to the daemon."""
