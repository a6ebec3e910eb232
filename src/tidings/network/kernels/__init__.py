"""Compiled loops of the network."""
