"""Documents matched with the views that the publisher feeds, spread over Spark.

    match_documents(spark, documents, views, encoding).write.parquet("matched")
    for document in match_in_order(spark, documents, views, encoding):
        publish(document)

Documents are spread, views are not: each worker process has all of them in one matcher, which shares work between views
(`tidings.relay.matching`). The frame of documents may be a stream for `match_documents`. For `match_in_order` it is a batch,
such as those that foreachBatch gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark import Broadcast
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.functions import col

from tidings.relay.document import Document
from tidings.relay.errors import DocumentError
from tidings.relay.files import View, parse_document
from tidings.relay.matching import PatternMatcher
from tidings.relay.pattern import Pattern

Encode = Callable[[Pattern, list[list[int]]], bytes]
"""What a view says of a document, as bytes, from the matches of its nodes."""
Encoding = Callable[[Document], Encode]
"""Prepared for each document, so that what several views say of it is read once. Must be picklable."""

_COLUMNS = "seq long, name string, view string, payload binary, reason string"
_SCHEMA = pa.schema(
    [
        ("seq", pa.int64()),
        ("name", pa.string()),
        ("view", pa.string()),
        ("payload", pa.binary()),
        ("reason", pa.string()),
    ]
)
_BATCH_BYTES = 8 * 2**20
"""Payloads that are handed to Spark at a time."""


@dataclass(frozen=True)
class MatchedDocument:
    """payloads: by view; views that are not named match nothing. reason: why the document cannot be used; None if it can."""

    seq: int | None
    name: str | None
    payloads: dict[str, bytes]
    reason: str | None


@dataclass(frozen=True)
class _Views:
    """What workers are sent."""

    ids: tuple[str, ...]
    patterns: tuple[Pattern, ...]
    matcher: PatternMatcher


def match_documents(spark: SparkSession, documents: DataFrame, views: Sequence[View], encoding: Encoding) -> DataFrame:
    """Rows (seq, name, view, payload, reason): one for each document, with no view, and one for each view that matches it.

    documents: seq (long), name (its end says whether XML or JSON) and content (binary). In a partition, rows are in the order
    of its documents, a document's own first. `reason` is null except in the row of a document that cannot be used. Views over
    rows are passed over.
    """
    found = [(view.id, view.query) for view in views if isinstance(view.query, Pattern)]
    patterns = tuple(pattern for _, pattern in found)
    sent = spark.sparkContext.broadcast(_Views(tuple(id for id, _ in found), patterns, PatternMatcher(patterns)))
    columns = (col("seq").cast("long"), col("name").cast("string"), col("content").cast("binary"))
    return documents.select(*columns).mapInArrow(partial(_matched, sent, encoding), _COLUMNS)


def match_in_order(
    spark: SparkSession, documents: DataFrame, views: Sequence[View], encoding: Encoding
) -> Iterator[MatchedDocument]:
    """The documents of a batch by their seq, those without one first. What Spark found is kept there until it is asked for."""
    # Documents are sorted, not what is found in them: that is more, and would be worked out twice, for a sample at first.
    matched = match_documents(spark, documents.orderBy("seq"), views, encoding).persist()
    try:
        matched.count()  # all partitions at once; the iterator takes one after the other
        yield from _gathered(matched.toLocalIterator())
    finally:
        matched.unpersist()


def _gathered(rows: Iterator[Row]) -> Iterator[MatchedDocument]:
    """Rows of one document follow each other, its own first."""
    document: MatchedDocument | None = None
    for row in rows:
        if row["view"] is not None:
            assert document is not None
            document.payloads[row["view"]] = bytes(row["payload"])
            continue
        if document is not None:
            yield document
        document = MatchedDocument(row["seq"], row["name"], {}, row["reason"])
    if document is not None:
        yield document


# From here on in tasks.


def _matched(
    sent: Broadcast[_Views], encoding: Encoding, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    views = sent.value
    for batch in batches:
        for seq, name, content in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            try:
                document = _parsed(seq, name, content)
            except DocumentError as error:
                yield _rows(seq, name, [None], [None], str(error))
            else:
                yield _rows(seq, name, [None], [None])
                yield from _payloads(views, encoding, seq, name, document)


def _parsed(seq: int | None, name: str | None, content: bytes | None) -> Document:
    if seq is None or name is None or content is None:
        missing = "seq" if seq is None else "name" if name is None else "content"
        raise DocumentError(f"the {missing} of the document is null")
    return parse_document(name, content)


def _payloads(views: _Views, encoding: Encoding, seq: int, name: str, document: Document) -> Iterator[pa.RecordBatch]:
    encode = encoding(document)
    matches = views.matcher.match(document)
    each = matches.all()
    ids: list[str | None] = []
    payloads: list[bytes | None] = []
    size = 0
    for view in matches.matched().tolist():
        payload = encode(views.patterns[view], each[view])
        ids.append(views.ids[view])
        payloads.append(payload)
        size += len(payload)
        if size > _BATCH_BYTES:
            yield _rows(seq, name, ids, payloads)
            ids, payloads, size = [], [], 0
    if ids:
        yield _rows(seq, name, ids, payloads)


def _rows(
    seq: int | None, name: str | None, ids: list[str | None], payloads: list[bytes | None], reason: str | None = None
) -> pa.RecordBatch:
    count = len(ids)
    columns = ([seq] * count, [name] * count, ids, payloads, [reason] * count)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)
