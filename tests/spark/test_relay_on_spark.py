"""Planning and running a relay with Spark gives what it gives without."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from pyspark.sql import SparkSession

from tidings.relay.errors import DocumentError
from tidings.relay.files import View, parse_document
from tidings.relay.planner import plan_relay
from tidings.relay.rewriting import PatternTable, find_rewritings
from tidings.relay.runtime.run import run_relay
from tidings.relay.spark.rewriting import find_rewritings_on_spark
from tidings.relay.spark.run import run_relay_on_spark
from tidings.relay.workloads.documents import document_xml
from tidings.relay.workloads.views import distinct_views

pytestmark = [pytest.mark.spark, pytest.mark.extended]


def test_rewritings_are_the_same(spark: SparkSession) -> None:
    table = PatternTable(islice(distinct_views(1), 2_500))
    cost = np.arange(len(table), dtype=np.float64) % 7
    seen: list[int] = []
    ours = find_rewritings(table, cost, 5)
    theirs = find_rewritings_on_spark(spark, table, cost, 5, on_progress=seen.append)
    assert (theirs.embedded, theirs.dropped) == (ours.embedded, ours.dropped)
    assert all(theirs.of(target) == ours.of(target) for target in range(len(table)))
    assert len(ours.first_source) > 2_500
    assert sum(seen) == len(table)


def test_results_are_the_same(spark: SparkSession) -> None:
    views = [View(f"v{n % 150}-{n}", pattern) for n, pattern in enumerate(islice(distinct_views(2, 3), 150))]
    views += [View(f"w{view.id}", view.query) for view in views[::3]]
    contents: list[tuple[str, bytes | DocumentError]] = [(f"{n}.xml", document_xml(2, n, 3)[:]) for n in range(4)]
    contents.insert(2, ("broken.xml", b"<site>"))
    contents.insert(3, ("unread.xml", DocumentError("cannot be read: no")))
    documents = [(name, _parsed(name, data)) for name, data in contents]
    samples = [document for _, document in documents if not isinstance(document, DocumentError)]
    plan = plan_relay(views, samples, capacity=4, partial=True).plan
    assert plan.feeds_in_part
    here: list[tuple[str, str | None, str]] = []
    there: list[tuple[str, str | None, str]] = []
    expected = list(run_relay(plan, views, documents, quarantine=lambda *refused: here.append(refused)))
    found = run_relay_on_spark(spark, plan, views, contents, quarantine=lambda *refused: there.append(refused))
    assert list(found) == expected
    assert len(expected) > 100
    assert there == here
    assert [name for name, _, _ in here] == ["broken.xml", "unread.xml"]


def _parsed(name: str, data: bytes | DocumentError) -> object:
    if isinstance(data, DocumentError):
        return data
    try:
        return parse_document(name, data)
    except DocumentError as error:
        return error
