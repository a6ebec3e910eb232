"""Running a plan over a stream of documents, and the lines of its results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from tidings.relay.errors import DocumentError, RowsError
from tidings.relay.files import View
from tidings.relay.pattern import Row
from tidings.relay.plan import RelayPlan
from tidings.relay.runtime.ledger import Result
from tidings.relay.runtime.matching import match_together
from tidings.relay.runtime.network import RelayNetwork
from tidings.relay.runtime.query import Matching

Quarantine = Callable[[str, str | None, str], None]
"""Called with a document's name, a view (None: all), and why subscribers are not told of the document."""


class Switch(NamedTuple):
    """Between documents: those behind it run by another plan, perhaps of other views."""

    plan: RelayPlan
    views: Sequence[View]


Item = tuple[str, object] | Switch
"""What a stream consists of: documents with their names, and changes of the plan."""


def run_relay(
    plan: RelayPlan,
    views: Sequence[View],
    documents: Iterable[Item],
    *,
    quarantine: Quarantine,
    matching: Matching = match_together,
) -> Iterator[tuple[str, str, list[Row]]]:
    """(view, document, rows) where there are rows: in the order of documents, then of view ids.

    A document that cannot be read goes to quarantine; so does a view that has too many rows in one, and only this one.
    UsageError if the plan does not fit the views, when the first result is asked for.
    """
    network = RelayNetwork(plan, views, matching=matching)
    for item in readable(documents, quarantine):
        if isinstance(item, Switch):
            network.switch(*item)
            continue
        network.publish(*item)
        network.run()
        yield from with_rows(network.results(), quarantine)


def readable(items: Iterable[Item], quarantine: Quarantine) -> Iterator[tuple[str, object] | Switch]:
    """The items without documents that cannot be published, which go to quarantine."""
    for item in items:
        if isinstance(item, Switch):
            yield item
            continue
        name, document = item
        if isinstance(document, DocumentError):
            quarantine(name, None, str(document))
        elif not _is_text(name):
            quarantine(name, None, "the document's name is not UTF-8: results could not name it")
        else:
            yield name, document


def with_rows(results: Iterable[Result], quarantine: Quarantine) -> Iterator[tuple[str, str, list[Row]]]:
    """What there is to tell; views with too many rows go to quarantine."""
    for view, document, rows in results:
        if isinstance(rows, RowsError):
            quarantine(document, view, str(rows))
        elif rows:
            yield view, document, rows


def result_line(view: str, document: str, rows: Sequence[Row]) -> bytes:
    """One line of the file of results, with its end."""
    return msgspec.json.encode({"view": view, "document": document, "rows": rows}) + b"\n"


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
