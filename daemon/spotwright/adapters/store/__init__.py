"""The durable store: SQLite for one daemon, PostgreSQL for several."""
