"""Compiled structures of the drift family.

Evaluation over shared rows: `evaluate` over `layout`, `members` and `tournament_tree`. Messages: `threshold_index`, and
`deliveries` for views.
"""
