"""The wire contract, generated from protos/ by `make proto`; never edited."""
