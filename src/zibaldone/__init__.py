"""Zibaldone: a knowledge server for AI agents."""

__version__ = "0.1.0"
