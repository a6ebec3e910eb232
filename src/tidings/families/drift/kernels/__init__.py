"""Compiled structures of the drift family.

Evaluation over shared rows: `evaluate` over `layout`, `members` and `tournament_tree`. Message strategies: `threshold_index`,
`baselines` to compare with, and `deliveries` for views.
"""
