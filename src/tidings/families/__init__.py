"""Families of subscriptions: one folder each, with the same file names inside. No family imports another. See `protocols`."""
