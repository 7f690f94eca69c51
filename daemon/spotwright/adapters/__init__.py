"""One package per outside system; none imports another."""
