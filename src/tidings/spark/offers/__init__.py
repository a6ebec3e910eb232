"""Constraints matched with constraints on Spark in one batch, by the index over a partition grid."""
