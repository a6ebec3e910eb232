"""Measurements of the published work that Tidings builds on: not part of what is installed, run from a clone."""
