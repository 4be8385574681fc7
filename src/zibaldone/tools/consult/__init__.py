"""Tools that ask other models."""
