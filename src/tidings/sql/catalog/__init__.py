"""Catalogs: CREATE TABLE statements, and the words they may use."""
