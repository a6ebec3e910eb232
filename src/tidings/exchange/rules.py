"""The rules of an auction table: which bids a lot accepts, what a bid amounts to, and which of two bids is better.

A lot is the publication, a bid the subscription. They match as in every table of constraints, and the bid's amount is the best
value of the declared attribute that both allow: in a table declared `auction = 'price DESC'` the greatest price, so that a bid
`price <= 120` for a lot `price >= 100` amounts to 120. `price < 120` amounts to the greatest double below 120.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache

from tidings.exchange.amounts import Amount, amount_of
from tidings.exchange.errors import NoAmountError, NoMatchError
from tidings.families.offers.constraint import Box, boxes_of
from tidings.families.offers.matching import attained, meet
from tidings.model.catalog import Catalog
from tidings.model.codes import CODE_MAX, CODE_MIN
from tidings.model.errors import CatalogError, SqlError
from tidings.model.types import ColumnType
from tidings.sql.conditions import ConditionCompiler

_CONSTRAINTS_KEPT = 4096
_MINUS_ZERO = -1
"""The code between the doubles below zero and zero, where open ends may lie but no value does: -0.0 has the code of 0.0."""


class AuctionRules:
    """What one table's declaration means for its lots and bids. Threads may share it."""

    def __init__(self, catalog: Catalog, table: str) -> None:
        found = catalog.table(table)
        if found.constraints.auction is None:
            raise CatalogError(
                f"table {table!r} has no auctions; create it WITH (rows = 'constraints', auction = 'column DESC'),"
                " or 'column ASC' where the lowest bid wins"
            )
        self.table = found
        self.attribute, self.is_highest = found.constraints.auction
        self._axis = found.axis_numbers[self.attribute]
        self._type = found.axis(self.attribute).type
        self._compiler = ConditionCompiler(catalog, found)
        self.lot_boxes = lru_cache(_CONSTRAINTS_KEPT)(self.boxes)
        """As `boxes`, for constraints that are asked for again and again."""

    @property
    def declaration(self) -> str:
        """All of the table that accepted bids depend on, as JSON."""
        options = self.table.constraints
        attributes = [[attribute.name, attribute.type.value] for attribute in self.table.attributes]
        return json.dumps({"attributes": attributes, "auction": options.auction, "classic": options.is_classic})

    def boxes(self, where: str) -> tuple[Box, ...]:
        """A lot's or bid's constraint, compiled. SqlError, which points into the text, if it cannot be used."""
        if not isinstance(where, str):
            raise SqlError(f"a constraint is a text, not {where!r}", hint="write it as the condition of a WHERE")
        if "\0" in where:
            raise SqlError("the constraint has a NUL character", hint="leave it out: databases do not keep it")
        statement = self._compiler.compile(where)
        return boxes_of(statement.shape, statement.constants, self.table)

    def amount(self, lot: Sequence[Box], bid: Sequence[Box]) -> int:
        """The code of what a bid for a lot amounts to. NoMatchError or NoAmountError if it is none."""
        is_classic = self.table.constraints.is_classic
        code = attained(lot, bid, self._axis, is_highest=self.is_highest, is_classic=is_classic)
        if code is None:
            raise NoMatchError("; ".join(("the bid does not match the lot", *self._objections(lot, bid))))
        if self._type is ColumnType.DOUBLE and code == _MINUS_ZERO:
            code = _MINUS_ZERO - 1 if self.is_highest else _MINUS_ZERO + 1
        # The extreme codes stand for "no end"; the BIGINTs that have them cannot be told apart from it.
        if code == (CODE_MAX if self.is_highest else CODE_MIN):
            side, sign = ("above", "<=") if self.is_highest else ("below", ">=")
            raise NoAmountError(
                f"a bid must name an amount: neither it nor the lot bounds {self.attribute!r} from {side};"
                f" add a condition such as {self.attribute} = .. or {self.attribute} {sign} .."
            )
        if amount_of(self._type, code) is None:
            raise NoAmountError(
                f"the bid's {self.attribute!r} is beyond all values of {self._type.value}; name one that exists"
            )
        return code

    def value(self, code: int) -> Amount:
        """The value of an accepted bid's amount."""
        value = amount_of(self._type, code)
        assert value is not None, "amount() gives only codes of values"
        return value

    def is_better(self, code: int, than: int) -> bool:
        """Whether an amount beats an earlier bid's. Equal ones do not: the earlier bid stays."""
        return code > than if self.is_highest else code < than

    def _objections(self, lot: Sequence[Box], bid: Sequence[Box]) -> Iterator[str]:
        """What a bidder should change, where the constraints are simple enough to say so."""
        if len(lot) > 1 or len(bid) > 1:
            yield "no alternative of the one meets an alternative of the other on all attributes"
            return
        asking, asked = (bid[0], lot[0]) if self.table.constraints.is_classic else (lot[0], bid[0])
        names = ("bid", "lot") if asking is bid[0] else ("lot", "bid")
        for axis in asking.axes:
            name = self.table.axes[axis].name
            if axis not in asked.axes:
                yield f"the {names[0]} constrains {name!r} and the {names[1]} does not: add a condition on it"
            elif not meet(_side(asking, axis), _side(asked, axis)):
                yield f"they allow no common {name!r}"


def _side(box: Box, axis: int) -> Box:
    """The box on one of its axes alone."""
    at = box.axes.index(axis)
    return Box((axis,), (box.lo[at],), (box.hi[at],), (box.texts[at],))
