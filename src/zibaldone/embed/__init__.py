"""Text to vectors. Work modules see only `port`."""
