"""Rows of join servers, by entry and by join value. All joins that need the same columns of a table share them."""
