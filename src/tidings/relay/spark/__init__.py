"""Relay on Spark: documents matched with the views that the publisher feeds."""
