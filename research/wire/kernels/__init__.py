"""Compiled loops of the wire format: varints, the ends of boxes, the book of ends."""
