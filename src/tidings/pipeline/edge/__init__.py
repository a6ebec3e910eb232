"""Places: subscriptions evaluated at gateways, each over only those rows that it was sent.

pack.py      what a place is sent in a micro-batch
partial.py   `PartialReplica`: the receiving end, a replica over the rows it was sent
sender.py    what all senders do; holders.py: who holds which rows
entered.py   `EnteredSender`: evaluates everything, and sends a place the rows that enter its answers
regions.py   `RegionSender`: sends a place the rows in whose regions it has points, where a family has regions

wire.py      parcels: what travels to a node, as bytes
dispatch.py  what a job or broker sends to its nodes; centre.py: of a live job; broker.py: of a broker
gateway.py   what a gateway makes of its parcels

`tidings.placed` runs a sender and its places in one process.
"""
