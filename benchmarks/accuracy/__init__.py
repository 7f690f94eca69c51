"""Predicted against measured: the accuracy of the performance model, beside that of its rivals."""
