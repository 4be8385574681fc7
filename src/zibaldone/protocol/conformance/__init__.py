"""Fixtures that the official conformance suite calls; served under `serve --conformance` only."""
