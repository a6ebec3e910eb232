"""Conditions of drift subscriptions: how far a value has moved, and for how long nothing was told."""
