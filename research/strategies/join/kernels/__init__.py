"""Structures of the region servers of joins."""
