"""Steering a job through real spot markets: cost and deadlines beside rivals."""
