"""Constraints matched with constraints on Spark: by the index over a partition grid, by SQL, and in replays."""
