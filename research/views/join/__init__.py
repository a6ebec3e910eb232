"""Views of join."""
