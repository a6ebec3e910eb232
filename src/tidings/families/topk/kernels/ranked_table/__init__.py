"""One table ranked one way, for the strategy `shared`: its rows in order, and the first rows of each subscription.

Read `layout`, `rank_index` (rows in order), `top_lists` (first rows of subscriptions), `evaluate` (the loop over events).
"""
