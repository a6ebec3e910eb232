"""Other strategies of joins: semijoins with one filter a table and other skylines, and the obvious ways to compare with.

`ref-sj:SKYLINE` sends rows as semijoins, every table filtered by one neighbour; `long-sj`: filtered by all other tables.
`rel-sel`: a row is sent to all who select it. `ref-j`, `ref-j+`: joined rows are sent whole. `enum-sj`, `enum-j`: a message to
each subscription.
"""
