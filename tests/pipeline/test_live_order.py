"""Sources that do not say in which order records came: all shards still agree on which of them pass."""

import json

import numpy as np

from tidings.model.change import SEQ_NEXT
from tidings.pipeline.ingest import Ingest
from tidings.pipeline.sequence import by_number, ties_of
from tidings.pipeline.tables import TableShard, TablesWork
from tidings.sql import parse_catalog

CATALOG = parse_catalog("CREATE TABLE t (id BIGINT PRIMARY KEY, x DOUBLE);")


def batches(*records):
    lines = [json.dumps(record).encode() for record in records]
    return [by_number(batch) for batch in Ingest(CATALOG).parse(lines).changes]


def run(blocks, owners):
    """Results of one shard per owner, each with the records of the ids it owns; all see the order of all."""
    everything = [batch for block in blocks for batch in batches(*block)]
    order = [
        np.concatenate(parts) for parts in zip(*((b.position, b.seq, ties_of(b)) for b in everything), strict=True)
    ]
    results = []
    for owner in owners:
        own = [batch.take(np.isin(np.asarray(batch.rows.column("id")), owner)) for batch in everything]
        shard = TableShard(CATALOG, {})
        results.append(shard.apply(TablesWork(own, order[0], order[1], ties=order[2]))[0])
    return results


def insert(seq, id):
    return {"seq": seq, "table": "t", "op": "insert", "row": {"id": id, "x": 1.0}}


def test_of_records_with_one_number_exactly_one_passes_whatever_their_order_and_shards():
    expected = None
    for blocks in ([[insert(5, 1), insert(5, 2), insert(6, 3)]], [[insert(6, 3)], [insert(5, 2)], [insert(5, 1)]]):
        for owners in ([[1, 2, 3]], [[1], [2], [3]]):
            results = run(blocks, owners)
            refused = [entry.raw for result in results for entry in result.refused]
            assert len(refused) == 1
            assert sum(result.accepted for result in results) == 2
            assert {result.passed for result in results} == {6}
            expected = expected or refused
            assert refused == expected


def test_a_record_that_came_twice_passes_once():
    (result,) = run([[insert(5, 1)], [insert(5, 1)]], [[1]])
    assert (result.accepted, len(result.refused)) == (1, 1)


def test_records_without_numbers_get_one_each_in_the_order_of_their_block():
    events = [{"op": "c", "after": {"id": id, "x": 1.0}, "source": {"table": "t"}} for id in (3, 1, 2)]
    assert all((batch.seq == SEQ_NEXT).all() for batch in batches(*events))
    results = run([events], [[1], [2], [3]])
    assert [result.accepted for result in results] == [1, 1, 1]
    assert {result.passed for result in results} == {3}
