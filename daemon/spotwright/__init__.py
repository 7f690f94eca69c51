"""Spotwright: the cheapest spot and on-demand GPU fleet that meets a training goal, with a proof."""
