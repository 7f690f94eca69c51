"""Predictions against real distributed training: hosts, links and faults on one machine."""
