"""TelemetryService: from agents into the store, and questions about it."""
