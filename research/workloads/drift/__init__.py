"""Workloads of movement subscriptions: those of the paper on value-based notification, and one with every kind of movement."""
