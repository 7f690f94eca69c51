"""The catalog of offers: snapshot files and the index that answers queries."""
