"""Providers of models: one port, three APIs."""
