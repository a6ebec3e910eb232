"""Workloads of offers: constraints on both sides, those of publications and those of subscriptions."""
