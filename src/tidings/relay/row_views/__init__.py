"""Views over rows: selections of one table by ranges, computed from batches of rows or from each other."""
