"""What things are: hardware, offers, jobs, fleets, predictions, plans and errors. Stdlib only."""
