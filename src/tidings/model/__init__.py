"""What flows through Tidings: catalog, changes, points, regions, messages, notifications. Frozen values, no I/O."""
