"""Why the exchange refuses something. A refusal leaves the store as it was."""

from __future__ import annotations

from tidings.model.errors import TidingsError


class ExchangeError(TidingsError):
    """Root of the errors of auctions and their store."""


class RefusedError(ExchangeError):
    """A lot, a bid or a close is refused; nothing was written. The subclass is the reason, for callers that tell them apart."""


class UnknownLotError(RefusedError):
    """No auction of this id was ever opened."""


class ClosedError(RefusedError):
    """The auction is closed: the bid came too late."""


class NoMatchError(RefusedError):
    """The bid and the lot have no point in common, or one of them leaves out what the other asks about."""


class NoAmountError(RefusedError):
    """Neither the lot nor the bid bounds the attribute that bids are compared by."""


class ConflictError(RefusedError):
    """The id was used before, with other content."""


class StoreError(ExchangeError):
    """The database could not be used.

    Whether the last transaction was committed may be unknown: call again with the same ids.
    """
