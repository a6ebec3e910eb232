"""Baselines of drift: `scan`, `unicast` and `relax`.

`scan` sends a change to the ranges that `region` sends it to, found by a look at all subscriptions; `unicast` finds the
affected subscriptions with heaps of thresholds and sends a message to each; `relax` sends every change to all subscriptions
that follow the row, and the views decide.
"""
