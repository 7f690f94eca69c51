"""Telemetry of the past as Parquet files."""
