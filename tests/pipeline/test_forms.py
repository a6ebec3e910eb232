"""A family that is spread by value lands through registration alone, and keeps the contract with any number of shards."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import strategies as st
from mirror_family import CATALOG, QUERIES, MirrorFamily

from tidings.families import registry
from tidings.families.spec import Together
from tidings.model.change import TableChanges
from tidings.pipeline.door import Door
from tidings.pipeline.forms import Groups, group_of
from tidings.pipeline.partition import shard_of_values
from tidings.sql import parse_catalog
from tidings.testing import ENGINE_CHECKS, STAGE_CHECKS, Workload, check_family, run_inline, workload_strategy


@pytest.fixture(autouse=True)
def mirror():
    family = MirrorFamily()
    registry.register(family)
    yield family
    registry._extra.remove(family)


def mirror_workloads():
    kinds = st.sampled_from(["'prefix08'", "'prefix08a'", "'prefix08b'", "'zzz'"])
    queries = st.builds(str.format, st.sampled_from(QUERIES), kinds)
    return workload_strategy(CATALOG, queries)


@pytest.mark.parametrize("check", (*ENGINE_CHECKS, *STAGE_CHECKS), ids=lambda check: check.__name__)
def test_contract(mirror, check):
    check_family(mirror, mirror_workloads(), checks=[check], examples=10)


def test_the_mirror_family_serves_its_table_and_select_the_others(mirror):
    door = Door(parse_catalog(CATALOG))
    found = [registry.family_of(door.place(query.format("'a'")).form)[0].name for query in QUERIES]
    assert found == ["mirror", "mirror", "select"]


def test_an_unregistered_family_is_not_checked(mirror):
    with pytest.raises(AssertionError, match="not registered"):
        check_family(MirrorFamily(), mirror_workloads(), examples=1)


def test_lines_of_a_row_that_moves_between_shards():
    rows = [{"id": 1, "kind": kind, "n": 5} for kind in ("a", "b", "b")]
    changes = [{"seq": i, "table": "mirrored", "op": "upsert", "row": row} for i, row in enumerate(rows, 1)]
    subscriptions = [{"id": kind, "sql": f"SELECT n FROM mirrored WHERE kind = '{kind}'"} for kind in "ab"]
    workload = Workload(CATALOG, subscriptions, changes)
    lines = run_inline(CATALOG, workload.subscription_lines(), workload.change_lines(), [1, 2], {})
    told = [(r["subscription"], r["seq"], [c["op"] for c in r["changes"]]) for r in map(json.loads, lines)]
    assert told == [("a", 0, []), ("b", 0, []), ("a", 1, ["insert"]), ("a", 2, ["delete"]), ("b", 2, ["insert"])]


def test_the_first_form_of_a_group_finds_rows_that_came_before_it():
    changes = [
        {"seq": i, "table": "mirrored", "op": "insert", "row": {"id": i, "kind": "a", "n": i}} for i in (1, 2, 3)
    ]
    late = "SELECT n FROM mirrored WHERE kind = 'a'"
    subscriptions = [{"id": "x", "sql": late, "after": 2}, {"id": "y", "sql": late.replace("n ", "* ", 1), "after": 3}]
    workload = Workload(CATALOG, subscriptions, changes)
    lines = run_inline(CATALOG, workload.subscription_lines(), workload.change_lines(), [1], {})
    told = [(r["subscription"], r["seq"], [c["row"]["n"] for c in r["changes"]]) for r in map(json.loads, lines)]
    assert told == [("x", 2, [1, 2]), ("x", 3, [3]), ("y", 3, [1, 2, 3])]


def images(before, after):
    schema = pa.schema([("id", pa.int32()), ("kind", pa.string()), ("n", pa.int32())])
    batches = [pa.RecordBatch.from_pylist([row or {} for row in rows], schema) for rows in (before, after)]
    had, has = (np.array([row is not None for row in rows]) for rows in (before, after))
    return TableChanges("mirrored", np.arange(1, len(before) + 1), had, batches[0], has, batches[1])


def test_every_shard_sees_its_own_side_of_a_change():
    kinds = [chr(ord("a") + i) for i in range(26)]
    values = pa.RecordBatch.from_pydict({"kind": kinds})
    shards = dict(zip(kinds, shard_of_values(values, ["kind"], 3).tolist(), strict=True))
    here, there = (next(kind for kind in kinds if shards[kind] == shard) for shard in (0, 2))
    catalog = parse_catalog(CATALOG)
    groups = Groups(catalog, 3)
    group, tables = groups.add(Door(catalog).place(QUERIES[0].format("'a'")).form)
    assert tables == ["mirrored"]
    row = {"id": 1, "n": 5}
    moved = images([{**row, "kind": here}, None], [{**row, "kind": there}, {**row, "kind": there}])
    parts = dict(groups.split(group, moved))
    assert sorted(parts) == [0, 2]
    assert (parts[0].seq.tolist(), parts[0].had.tolist(), parts[0].has.tolist()) == ([1], [True], [False])
    assert parts[0].after.to_pylist() == [{"id": None, "kind": None, "n": None}]
    assert (parts[2].seq.tolist(), parts[2].had.tolist(), parts[2].has.tolist()) == (
        [1, 2],
        [False, False],
        [True, True],
    )


def test_groups_survive_their_dump():
    catalog = parse_catalog(CATALOG)
    form = Door(catalog).place(QUERIES[0].format("'a'")).form
    groups, copy = Groups(catalog, 4), Groups(catalog, 4)
    groups.add(form)
    copy.load(groups.dump())
    assert copy.watching("mirrored") == [group_of(form, catalog, 4)]
    assert copy.watching("items") == []
    assert copy.shards(group_of(form, catalog, 4)) == range(4)


def test_equal_values_meet_in_one_shard():
    rows = pa.RecordBatch.from_pydict({"d": [0.0, -0.0, 1.5, 1.5], "t": ["a", "a", None, None]})
    shards = shard_of_values(rows, ["d", "t"], 1_000).tolist()
    assert shards[0] == shards[1] != shards[2]
    assert shards[2] == shards[3]


def test_forms_that_cannot_be_spread_have_a_group_each(monkeypatch):
    spread = MirrorFamily.spec
    alone = lambda self, form, catalog: replace(spread(self, form, catalog), sharding=Together(form.key))  # noqa: E731
    monkeypatch.setattr(MirrorFamily, "spec", alone)
    catalog = parse_catalog(CATALOG)
    door = Door(catalog)
    first, second = (door.place(query.format("'a'")).form for query in QUERIES[:2])
    assert group_of(first, catalog, 4) != group_of(second, catalog, 4)
    groups = Groups(catalog, 4)
    assert groups.add(first) == (group_of(first, catalog, 4), ["mirrored"])
    assert groups.watching("mirrored") == [group_of(first, catalog, 4)]
    assert groups.shards(group_of(first, catalog, 4)) == range(1)


STAR = """
CREATE TABLE sales (id BIGINT PRIMARY KEY, shop BIGINT, item BIGINT, price DOUBLE);
CREATE TABLE shops (shop BIGINT PRIMARY KEY, size DOUBLE);
CREATE TABLE items (item BIGINT PRIMARY KEY, weight DOUBLE);
CREATE TABLE owners (id BIGINT PRIMARY KEY, shop BIGINT, item BIGINT);
"""
SHOPS, ITEMS = "sales JOIN shops USING (shop)", "sales JOIN items USING (item)"
BOTH = "sales JOIN shops USING (shop) JOIN items USING (item)"
OWNED = "owners JOIN shops USING (shop) JOIN items USING (item)"


def test_joins_that_cannot_be_spread_meet_with_others_around_the_same_table():
    catalog = parse_catalog(STAR)
    door = Door(catalog)
    shops, items, both, owned = (door.place(f"SELECT * FROM {source}").form for source in (SHOPS, ITEMS, BOTH, OWNED))
    # With one shard there is nothing to spread, and all are together.
    assert len({group_of(form, catalog, 1) for form in (shops, items, both, owned)}) == 1
    assert len({group_of(form, catalog, 4) for form in (shops, items, both, owned)}) == 4
    # Rows of all tables that are joined by shop meet, by shop.
    assert group_of(door.place("SELECT * FROM owners JOIN shops USING (shop)").form, catalog, 4) == group_of(
        shops, catalog, 4
    )
    assert group_of(door.place("SELECT * FROM owners JOIN shops ON owners.item = shops.shop").form, catalog, 4) not in (
        group_of(shops, catalog, 4),
        group_of(items, catalog, 4),
    )
    turned = door.place("SELECT * FROM items JOIN sales USING (item) JOIN shops USING (shop)").form
    assert turned != both
    assert group_of(turned, catalog, 4) == group_of(both, catalog, 4)


def test_a_group_hears_of_tables_when_the_first_form_needs_them():
    catalog = parse_catalog(STAR)
    door, groups = Door(catalog), Groups(catalog, 1)
    shops, both = (door.place(f"SELECT * FROM {source}").form for source in (SHOPS, BOTH))
    group, tables = groups.add(shops)
    assert tables == ["sales", "shops"]
    assert groups.watching("items") == []
    assert groups.add(both) == (group, ["items"])
    assert groups.watching("items") == groups.watching("sales") == [group]
    assert groups.add(both) == (group, [])
