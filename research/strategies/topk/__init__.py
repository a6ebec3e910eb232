"""Other strategies of top-k: `sparse`, `sketch:RECTANGLES`, `dense:EPS`, `sparse:EPS`, `unicast` and `relax`.

`sparse` knows the points: its tiles are fewer and smaller than those of `dense`, and none is empty; `sketch` knows so many
rectangles that cover them. `dense:EPS` and `sparse:EPS` merge up to k tiles into about 1 / EPS, which contain some
subscriptions that do not need the row. `unicast` sends a message to each point in the dense tiles; `relax` sends a row to all
ranges that contain it.
"""
