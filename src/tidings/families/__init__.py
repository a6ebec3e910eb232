"""Families of subscriptions: each a folder with the same files inside, unaware of the others. See `protocols`."""
