"""Embedding models: text to vectors. Other layers see only `port`."""
