"""Rewriting rules of the WHERE clause, one a file; `tidings.sql.normalize` puts them in order."""
