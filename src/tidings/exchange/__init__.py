"""The exchange: auctions on tables of constraints, kept in a database, and notices that reach everyone concerned.

`Auctions` opens and closes auctions and takes bids; `Outbox` hands on what their transactions say is to be told; `Inbox` lets a
receiver act on each notice once. docs/auctions.md is the walk-through. `tidings.exchange.grid` matches constraints in batches.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tidings.model.errors import UsageError

if TYPE_CHECKING:
    from tidings.exchange.amounts import Amount as Amount
    from tidings.exchange.auctions import Auctions as Auctions
    from tidings.exchange.errors import ClosedError as ClosedError
    from tidings.exchange.errors import ConflictError as ConflictError
    from tidings.exchange.errors import ExchangeError as ExchangeError
    from tidings.exchange.errors import NoAmountError as NoAmountError
    from tidings.exchange.errors import NoMatchError as NoMatchError
    from tidings.exchange.errors import RefusedError as RefusedError
    from tidings.exchange.errors import StoreError as StoreError
    from tidings.exchange.errors import UnknownLotError as UnknownLotError
    from tidings.exchange.inbox import Inbox as Inbox
    from tidings.exchange.outbox import Outbox as Outbox
    from tidings.exchange.records import BestOffer as BestOffer
    from tidings.exchange.records import Bid as Bid
    from tidings.exchange.records import Lot as Lot
    from tidings.exchange.records import Notice as Notice
    from tidings.exchange.records import Outcome as Outcome
    from tidings.exchange.records import Receipt as Receipt
    from tidings.exchange.store import Store as Store

_ERRORS = ("ClosedError", "ConflictError", "ExchangeError", "NoAmountError", "NoMatchError", "RefusedError")
_RECORDS = ("BestOffer", "Bid", "Lot", "Notice", "Outcome", "Receipt")
_PLACES = {"Amount": "amounts", "Auctions": "auctions", "Inbox": "inbox", "Outbox": "outbox", "Store": "store"}
_PLACES |= dict.fromkeys((*_ERRORS, "StoreError", "UnknownLotError"), "errors") | dict.fromkeys(_RECORDS, "records")
__all__ = ["Amount", "Auctions", "BestOffer", "Bid", "ClosedError", "ConflictError", "ExchangeError", "Inbox", "Lot"]
__all__ += ["NoAmountError", "NoMatchError", "Notice", "Outbox", "Outcome", "Receipt", "RefusedError", "Store"]
__all__ += ["StoreError", "UnknownLotError"]


def __getattr__(name: str) -> Any:
    """Loaded when asked for: the grid needs no database."""
    if name not in _PLACES:
        raise AttributeError(f"module 'tidings.exchange' has no attribute {name!r}")
    try:
        return getattr(import_module(f"tidings.exchange.{_PLACES[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name != "sqlalchemy":
            raise
        raise UsageError("auctions need the package SQLAlchemy: pip install '.[exchange]' in the clone") from None
