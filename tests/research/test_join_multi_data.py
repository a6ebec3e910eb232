"""Scenes of several tables as the pipeline sees them: points are those of the door, images those of the tables."""

from __future__ import annotations

import numpy as np
import pytest

from research.bench.join.multi_data import MultiData
from research.workloads.join.multi import SIGNATURES, GeneralCase, StarCase
from research.workloads.join.tables import GENERAL, STAR, change_lines
from tidings.model.change import Op, TableChanges
from tidings.pipeline.door import Door

CASES = {"general": (GENERAL, GeneralCase().sized(40)), "star": (STAR, StarCase(shares=(1, 2, 1, 1)).sized(100))}


@pytest.fixture(scope="module", params=CASES)
def data(request: pytest.FixtureRequest) -> MultiData:
    schema, case = CASES[request.param]
    return MultiData(schema, case.scene(seed=3, subscriptions=60, changes=400))


def play(tables: dict[str, dict[int, dict]], key: str, changes: TableChanges) -> None:
    """Makes changes, and checks that their images are those of the tables."""
    rows = tables[changes.table]
    both = zip(
        changes.had.tolist(), changes.before.to_pylist(), changes.has.tolist(), changes.after.to_pylist(), strict=True
    )
    for had, before, has, after in both:
        if had:
            assert rows.pop(before[key]) == before
        else:
            assert set(before.values()) == {None}
        if has:
            assert after[key] not in rows
            rows[after[key]] = after
        else:
            assert set(after.values()) == {None}


def filled(data: MultiData) -> dict[str, dict[int, dict]]:
    tables: dict[str, dict[int, dict]] = {table.name: {} for table in data.schema.tables}
    for number, table in enumerate(data.schema.tables):
        play(tables, table.key, data.first_rows(number))
        assert len(tables[table.name]) == data.scene.tables[number].start
    return tables


@pytest.mark.parametrize("together", [1, 20])
def test_images_are_those_of_the_tables(data: MultiData, together: int) -> None:
    tables, seen = filled(data), []
    for start in range(0, data.scene.changes, together):
        for number, op, changes in data.changes(start, start + together):
            assert changes.table == data.schema.tables[number].name
            assert (changes.had == (op != Op.INSERT)).all() and (changes.has == (op != Op.DELETE)).all()
            play(tables, data.schema.tables[number].key, changes)
            seen += changes.seq.tolist()
    assert sorted(seen) == list(range(1, data.scene.changes + 1))


def test_rows_are_those_of_the_workload(data: MultiData) -> None:
    scene = data.scene
    lines = change_lines(data.schema, scene.tables, scene.payloads, [scene.steps], scene.changes)
    tables = filled(data)
    for start, line in enumerate(lines):
        ((number, op, changes),) = data.changes(start, start + 1)
        table = data.schema.tables[number]
        play(tables, table.key, changes)
        assert f'"table": "{table.name}", "op": "{op.name.lower()}"'.encode() in line
        row = changes.before.to_pylist()[0] if op == Op.DELETE else changes.after.to_pylist()[0]
        assert f'"{table.key}": {row[table.key]}'.encode() in line
        if op != Op.DELETE:
            assert f'"{table.value}": {row[table.value]}'.encode() in line
            assert len(row["note"]) == scene.payloads[number]


def test_points_are_those_of_the_door(data: MultiData) -> None:
    door, found = Door(data.catalog), 0
    for signature, tables in enumerate(SIGNATURES):
        points = data.points(signature)
        assert [side.table.name for side in data.space(signature).sides] == [data.schema.tables[t].name for t in tables]
        for number, coords in zip(points.order.tolist(), points.coords.tolist(), strict=True):
            ends = np.nan_to_num(data.scene.ranges[number]).tolist()
            placed = door.place(data.schema.sql(tables, ends))
            assert placed.form == points.form and list(placed.coords) == coords
            found += 1
    assert found == data.scene.size
