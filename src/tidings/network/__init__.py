"""The network: routes messages from regions to zones of points. Does not know families."""
