"""Qdrant as an index of the store's vectors: fed from the store's notes, checked against it."""
