"""The networks of the papers: routing regions to points, and payload caching, counted and simulated."""
