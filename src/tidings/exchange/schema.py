"""The tables of an exchange's store, the same in SQLite and PostgreSQL.

An auction's row in `auctions` is what its transactions lock. It is there for good, and so are the receipts of bids; all else of
an auction is deleted at its close. Amounts are codes, so that databases order them as the types do.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, MetaData, Table, Text, false

metadata = MetaData()

declarations = Table(
    "tidings_declarations",
    metadata,
    Column("table_name", Text, primary_key=True),
    Column("declaration", Text, nullable=False),
)
"""What each auction table was declared as when its first auctions were opened."""

auctions = Table(
    "tidings_auctions",
    metadata,
    Column("table_name", Text, primary_key=True),
    Column("lot", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("last_seq", BigInteger, nullable=False),
    Column("closed_seq", BigInteger),
    Column("winner_id", Text),
    Column("winner_bidder", Text),
    Column("winner_amount", BigInteger),
    Column("winner_seq", BigInteger),
)
"""Every auction there was. digest: of the publication's content; last_seq: of the latest bid, or the close."""

lots = Table(
    "tidings_lots",
    metadata,
    Column("table_name", Text, primary_key=True),
    Column("lot", Text, primary_key=True),
    Column("condition", Text, nullable=False),
)
"""Constraints of open auctions."""

bids = Table(
    "tidings_bids",
    metadata,
    Column("table_name", Text, primary_key=True),
    Column("lot", Text, primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("id", Text, nullable=False),
    Column("bidder", Text, nullable=False),
    Column("condition", Text, nullable=False),
    Column("amount", BigInteger, nullable=False),
    Index("tidings_bids_ranked", "table_name", "lot", "amount", "seq"),
)
"""Accepted bids of open auctions."""

best_offers = Table(
    "tidings_best_offers",
    metadata,
    Column("table_name", Text, primary_key=True),
    Column("lot", Text, primary_key=True),
    Column("version", BigInteger, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("id", Text, nullable=False),
    Column("bidder", Text, nullable=False),
    Column("amount", BigInteger, nullable=False),
)
"""The best bid of each open auction that has one."""

receipts = Table(
    "tidings_receipts",
    metadata,
    Column("table_name", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("lot", Text, nullable=False),
    Column("bidder", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("version", BigInteger),
    Index("tidings_receipts_by_lot", "table_name", "lot"),
)
"""Answers to accepted bids, for those who ask again. They outlive the auction. digest: of the bid's content."""

outbox = Table(
    "tidings_outbox",
    metadata,
    Column("position", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    Column("destination", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("is_delivered", Boolean, nullable=False, default=False),
    sqlite_autoincrement=True,
)
"""Notices in the order in which they were written."""

Index(
    "tidings_outbox_pending",
    outbox.c.position,
    sqlite_where=outbox.c.is_delivered == false(),
    postgresql_where=outbox.c.is_delivered == false(),
)

inbox = Table(
    "tidings_inbox",
    metadata,
    Column("consumer", Text, primary_key=True),
    Column("id", Text, primary_key=True),
)
"""Ids of the notices whose effect a consumer has written."""
