"""Flags, configuration and wiring: the only place that names concrete adapters."""
