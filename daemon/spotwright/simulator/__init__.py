"""The market replayed: traces, events and policies, driving the use cases that a daemon drives."""
