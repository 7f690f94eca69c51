"""What reads one part of the host each; `all.py` opens those of this host."""
