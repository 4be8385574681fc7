"""Memory that a model has read."""
