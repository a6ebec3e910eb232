"""Views of drift."""
