"""Experiments of the papers done again: configuration as data, published numbers beside measured ones."""
