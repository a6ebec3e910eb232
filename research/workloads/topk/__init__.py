"""Workloads of top-k subscriptions: those of the paper on range top-k."""
