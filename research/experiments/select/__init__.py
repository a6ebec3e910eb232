"""Selections with bulky columns: the claims of section I of the paper on select-joins."""
