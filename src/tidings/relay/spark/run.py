"""A relay whose publisher matches documents on Spark: what it finds goes through the plan in this process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from pyspark.sql import SparkSession

from tidings.relay.errors import DocumentError
from tidings.relay.files import View
from tidings.relay.message import Parts, decode_parts
from tidings.relay.pattern import Row
from tidings.relay.plan import RelayPlan
from tidings.relay.runtime.epochs import Epoch, queries_of
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
    published = Epoch(1, 1, plan, queries_of(views)).roots
    names = {query.pattern: ids[0] for query, ids in published.items() if isinstance(query, PatternQuery)}

    def matching(queries: Sequence[Query]) -> Matcher:
        ids = [names[query.pattern] if isinstance(query, PatternQuery) else "" for query in queries]

        def matcher(document: MatchedDocument) -> list[Parts]:
            payloads = document.payloads
            return [decode_parts(payloads[id]) if id in payloads else None for id in ids]

        return matcher

    fed = [View(id, pattern) for pattern, id in names.items()]
    matched = _matched(spark, fed, iter(documents))
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
