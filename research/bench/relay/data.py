"""View sets and documents of the relay workloads, as the bench and the experiments use them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from tidings.relay.document import Document
from tidings.relay.pattern import Pattern
from tidings.relay.workloads.documents import document_xml
from tidings.relay.workloads.dtd import VALUES
from tidings.relay.workloads.views import distinct_views, repeated_views


@dataclass(frozen=True)
class ViewSet:
    """distinct: how many of the views differ; 0: all. values: how many predicates choose from."""

    views: int
    distinct: int = 0
    values: int = len(VALUES)

    def patterns(self, seed: int) -> Iterator[Pattern]:
        if 0 < self.distinct < self.views:
            return repeated_views(seed, self.views, self.distinct, self.values)
        return islice(distinct_views(seed, self.values), self.views)


def documents(seed: int, first: int, count: int, values: int = len(VALUES)) -> list[Document]:
    """Those with the numbers from `first` on."""
    from tidings.relay.xml_document import parse_xml

    return [parse_xml(document_xml(seed, number, values)) for number in range(first, first + count)]
