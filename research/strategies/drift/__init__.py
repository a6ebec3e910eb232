"""Region servers of drift, and baselines.

`region` sends a change to ranges of radii and labels; `region:renewed` keeps the labels in order, by changing some. `scan`
sends to the ranges of `region`, found by a look at all subscriptions; `unicast` finds the affected subscriptions with heaps of
thresholds and sends a message to each; `relax` sends every change to all subscriptions that follow the row, and the views
decide. `relaxed` and `choice` tell what they define themselves (`relaxed.py`).
"""
