"""Spotwright: the cheapest GPU fleet that meets a training goal, with a proof."""
