"""Builds the parts from the settings, and connects them. Nothing else does.

Separate modules, so that a command that only needs a Runtime does not import the HTTP server.
"""
