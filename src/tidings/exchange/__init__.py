"""The exchange: auctions on tables of constraints, kept in a database, and notices that reach everyone concerned.

`Auctions` opens and closes auctions and takes bids; `Outbox` hands on what their transactions say is to be told; `Inbox` lets a
receiver act on each notice once. docs/auctions.md is the walk-through.
"""

from tidings.model.errors import UsageError

try:
    import sqlalchemy as _  # noqa: F401 - all below need it
except ModuleNotFoundError:
    raise UsageError("auctions need the package SQLAlchemy: pip install '.[exchange]' in the clone") from None

from tidings.exchange.amounts import Amount
from tidings.exchange.auctions import Auctions
from tidings.exchange.errors import (
    ClosedError,
    ConflictError,
    ExchangeError,
    NoAmountError,
    NoMatchError,
    RefusedError,
    StoreError,
    UnknownLotError,
)
from tidings.exchange.inbox import Inbox
from tidings.exchange.outbox import Outbox
from tidings.exchange.records import BestOffer, Bid, Lot, Notice, Outcome, Receipt
from tidings.exchange.store import Store

__all__ = [
    "Amount",
    "Auctions",
    "BestOffer",
    "Bid",
    "ClosedError",
    "ConflictError",
    "ExchangeError",
    "Inbox",
    "Lot",
    "NoAmountError",
    "NoMatchError",
    "Notice",
    "Outbox",
    "Outcome",
    "Receipt",
    "RefusedError",
    "Store",
    "StoreError",
    "UnknownLotError",
]
