"""What a fleet will do: step time, loss, interruptions. Pure: no I/O, no clock, no randomness."""
