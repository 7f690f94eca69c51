"""One module per verb, and the ports through which the outside world is reached."""
