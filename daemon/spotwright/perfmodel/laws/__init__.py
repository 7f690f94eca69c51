"""Laws fitted to small tables of measurements: rows in, a law and its uncertainty out."""
