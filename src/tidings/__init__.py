"""Tidings: live queries for millions. Every subscriber is told exactly the changes to its own answer."""

__version__ = "0.1.0"
