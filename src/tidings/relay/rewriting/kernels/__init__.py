"""Compiled loops of embedding, covering and grouping."""
