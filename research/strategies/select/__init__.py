"""Region servers of select."""
