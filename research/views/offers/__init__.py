"""Views of offers."""
