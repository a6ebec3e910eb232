"""Views of select."""
