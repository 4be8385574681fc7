"""Keeping the vectors in step with the documents."""
