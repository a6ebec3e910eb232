"""A relay whose publisher matches documents on Spark: what it finds goes through the plan in this process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from pyspark.sql import SparkSession

from tidings.relay.errors import DocumentError
from tidings.relay.files import View
from tidings.relay.message import Parts, decode_parts
from tidings.relay.pattern import Pattern, Row
from tidings.relay.plan import PUBLISHER, RelayPlan
from tidings.relay.runtime.pattern_query import PatternQuery, encode_parts_of
from tidings.relay.runtime.query import Matcher, Query
from tidings.relay.runtime.run import Quarantine, run_relay
from tidings.relay.spark.matching import MatchedDocument, match_in_order

DOCUMENTS = 200
"""Documents that are matched at a time."""


def run_relay_on_spark(
    spark: SparkSession,
    plan: RelayPlan,
    views: Sequence[View],
    documents: Iterable[tuple[str, bytes | DocumentError]],
    *,
    quarantine: Quarantine,
) -> Iterator[tuple[str, str, list[Row]]]:
    """As `run_relay`, from documents as bytes. Views over rows find nothing: their documents are refused by Spark."""
    fed: dict[Pattern, View] = {}
    for view in views:
        if plan.inputs.get(view.id) == (PUBLISHER,) and isinstance(view.query, Pattern):
            fed.setdefault(view.query, view)
    names = {pattern: view.id for pattern, view in fed.items()}

    def matching(queries: Sequence[Query]) -> Matcher:
        ids = [names[query.pattern] if isinstance(query, PatternQuery) else "" for query in queries]

        def matcher(document: MatchedDocument) -> list[Parts]:
            payloads = document.payloads
            return [decode_parts(payloads[id]) if id in payloads else None for id in ids]

        return matcher

    matched = _matched(spark, list(fed.values()), iter(documents))
    yield from run_relay(plan, views, matched, quarantine=quarantine, matching=matching)


def _matched(
    spark: SparkSession, fed: Sequence[View], documents: Iterator[tuple[str, bytes | DocumentError]]
) -> Iterator[tuple[str, MatchedDocument | DocumentError]]:
    while batch := list(islice(documents, DOCUMENTS)):
        rows = [(seq, name, bytearray(data)) for seq, (name, data) in enumerate(batch) if isinstance(data, bytes)]
        frame = spark.createDataFrame(rows, "seq long, name string, content binary")
        found = match_in_order(spark, frame.repartition(spark.sparkContext.defaultParallelism), fed, encode_parts_of)
        for name, data in batch:
            if isinstance(data, DocumentError):
                yield name, data
                continue
            document = next(found)
            yield name, document if document.reason is None else DocumentError(document.reason)
