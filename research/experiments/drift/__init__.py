"""Value-based notification: different radii, the same radius, all radii, and radii that may be chosen."""
