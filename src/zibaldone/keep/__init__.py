"""Keeping documents: the one write path, and the reads beside it.

Each module is a plain function over one transaction (`store.port.Writer` or `Reader`).
"""
