"""Compiled loops of the top-k evaluator: rows in rank order, the first rows of each subscription, and who is told what."""
