"""Certificates: made, checked and read anew."""
