"""What training processes tell of their steps, and how they are answered."""
