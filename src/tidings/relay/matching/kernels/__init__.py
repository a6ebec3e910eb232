"""Compiled loops of the matcher of many patterns."""
