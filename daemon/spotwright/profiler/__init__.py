"""A PyTorch model run a few steps here: sizes, memory, step times and stalls; needs torch."""
