"""Constraints matched in one batch: by the index of boxes, shared out by a partition grid (`spark.match_boxes`)."""
