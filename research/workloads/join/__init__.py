"""Workloads of join subscriptions: those of the paper on select-joins."""
