"""Retrieval tools: searches return ids and scores, fetches return content."""
