"""Fitting a workload to measured steps. Pure: rows in, parameters and error figures out."""
