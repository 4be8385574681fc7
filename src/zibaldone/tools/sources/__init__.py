"""Databases as sources: for the operator's own process only."""
