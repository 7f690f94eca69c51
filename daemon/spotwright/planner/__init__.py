"""Which fleet to rent, exactly."""
