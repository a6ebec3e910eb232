"""The network: routes regions to points, and knows nothing of families."""
