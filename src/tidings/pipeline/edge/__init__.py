"""Places: subscriptions evaluated at gateways, each over only those rows that it was sent.

pack.py      what a place is sent in a micro-batch
partial.py   `PartialReplica`: the receiving end, a replica over the rows it was sent
entered.py   `EnteredSender`: evaluates everything, and sends a place the rows that enter its answers
placed.py    `PlacedEngine`: a sender and its places in one process
"""
