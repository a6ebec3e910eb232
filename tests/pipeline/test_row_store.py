"""A row store accepts, refuses and shows records as the stages of plain columns do, however the records are written."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bad_changes import CATALOG, ROW, WRONG_VALUES
from tidings.kernels.lives import new_lives
from tidings.kernels.rows import scan
from tidings.model.codes import code_of
from tidings.model.quarantine import Quarantined
from tidings.pipeline import ingest
from tidings.pipeline.door import Door
from tidings.pipeline.ingest import Ingest
from tidings.pipeline.replica.row_store import RowStore
from tidings.plain import PlainEngine
from tidings.sql import parse_catalog
from tidings.testing.select_inputs import VALUES

NOTHING = np.empty(0, np.int64)
TABLES = parse_catalog(CATALOG)
COLUMNS = {table.name: table.columns for table in TABLES.tables}


def feed(store, lines, position=0):
    """Runs a micro-batch; gives its events and refusals, with the store settled."""
    batch = store.take(lines, position, 2**63 - 1)
    if batch.events is None:
        store.apply(batch, NOTHING, NOTHING, NOTHING, new_lives(0))
    store.settle()
    return batch.events, batch.refused


def row_lines(store):
    """All rows as insert records with seqs from 1 on."""
    rows = [(table, texts) for table in store.catalog.tables for texts in store.texts(table.name)]
    return [
        b'{"seq": %d, "table": "%b", "op": "insert", "row": {%b}}'
        % (
            seq,
            table.name.encode(),
            b", ".join(
                b'"%b": %b' % (name.encode(), text) for name, text in zip(table.column_names, texts, strict=True)
            ),
        )
        for seq, (table, texts) in enumerate(rows, 1)
    ]


def rows_of(store):
    """Rows as text, from the store's own lines."""
    return sorted(line.split(b'"table"')[1] for line in row_lines(store))


def styles(record):
    """The record in several spellings of JSON."""
    row = record["row"]
    turned = {**record, "row": dict(reversed(row.items()))}
    return st.sampled_from(
        [
            json.dumps(record),
            json.dumps(record, ensure_ascii=False),
            json.dumps(record, separators=(",", ":")),
            json.dumps(turned, ensure_ascii=False),
            json.dumps({"table": record["table"], **record}),
            " " + json.dumps(record, ensure_ascii=False) + "\t",
        ]
    )


@st.composite
def lines(draw):
    seq, found = 0, []
    for _ in range(draw(st.integers(0, 12))):
        seq += draw(st.sampled_from([1, 1, 1, 2, 0, -1]))
        table = draw(st.sampled_from(["items", "pairs"]))
        op = draw(st.sampled_from(["insert", "insert", "update", "upsert", "delete"]))
        keys = TABLES.table(table).key
        row = {}
        for column in COLUMNS[table]:
            value = st.sampled_from(VALUES[column.type][:4] if column.name in keys else VALUES[column.type])
            row[column.name] = draw(value if column.name in keys else st.none() | value)
        if op == "delete" and draw(st.booleans()):
            row = {name: row[name] for name in keys}
        text = draw(styles({"seq": seq, "table": table, "op": op, "row": row}))
        found.append(text.encode("utf-8", "surrogatepass"))
    return found


@settings(max_examples=40)
@given(lines(), st.integers(1, 5))
def test_a_store_is_as_plain_tables(lines, size):
    store, plain = RowStore(TABLES), PlainEngine(TABLES, Door(TABLES, keeps_queries=True))
    for first in range(0, len(lines), size):
        batch = lines[first : first + size]
        events, refused = feed(store, batch, first)
        assert refused == plain.feed(batch).refused
        assert store.passed == plain._passed
        assert (np.diff(events.seq) > 0).all()
    assert store.count(0) == len(plain._tables["items"])
    again = RowStore(TABLES)
    again.load(store.dump())
    assert rows_of(again) == rows_of(store)
    assert [*again.rows.layout[:, 8]] == [*store.rows.layout[:, 8]]


@pytest.mark.parametrize("column", ROW)
def test_values_have_their_codes_and_texts(column):
    type = TABLES.table("items").column(column).type
    at = TABLES.table("items").column_names.index(column)
    decoder = Ingest(TABLES)
    for value in VALUES[type]:
        line = json.dumps({"seq": 1, "table": "items", "op": "insert", "row": {**ROW, column: value}}).encode()
        store = RowStore(TABLES)
        events, refused = feed(store, [line])
        assert not refused
        values = decoder.decode(line).values
        record = int(store.rows.page_base[0]) + int(events.new[0]) * int(store.rows.layout[0, 1])
        if type.is_comparable:
            assert store.rows.words[record + int(store.rows.layout[0, 3]) + at] == code_of(type, values[at])
        shown = json.loads(row_lines(store)[0])["row"][column]
        assert shown == value or decoder.decode(row_lines(store)[0])[3] == values


@pytest.mark.parametrize(
    ("column", "text"), [(column, text) for column in WRONG_VALUES for text in WRONG_VALUES[column]]
)
def test_wrong_values_are_refused_as_by_ingest(column, text):
    row = ", ".join(f'"{name}": {text if name == column else json.dumps(value)}' for name, value in ROW.items())
    line = f'{{"seq": 1, "table": "items", "op": "insert", "row": {{{row}}}}}'.encode()
    store = RowStore(TABLES)
    _, refused = feed(store, [line])
    by_ingest = list[Quarantined]()
    Ingest(TABLES).read(line, 0, by_ingest)
    assert refused == by_ingest
    assert store.count(0) == 1 - len(refused)


def test_numbers_that_are_not_the_shortest_text_are_made_so():
    texts = [
        "1.50",
        "1e2",
        "0.10000000000000001",
        "123456789012345678.5",
        "0.00001",
        "-0.0",
        "-0",
        "-0e5",
        "-1e-400",
        "100",
        "1.0E+2",
        "0.0001",
    ]
    store = RowStore(TABLES)
    for seq, text in enumerate(texts, 1):
        line = f'{{"seq": {seq}, "table": "pairs", "op": "insert", "row": {{"a": "x", "n": {seq}, "v": {text}}}}}'
        assert not feed(store, [line.encode()])[1]
    found = sorted((json.loads(line)["row"]["n"], line.split(b'"v": ')[1][:-2].decode()) for line in row_lines(store))
    assert [shown for _, shown in found] == [repr(float(text) + 0.0) for text in texts]


def test_texts_are_compacted_and_versions_reused():
    store = RowStore(TABLES)
    row = {"a": "x", "n": 1, "v": 1.5}
    long = "y" * 100_000
    for seq in range(1, 60):
        record = {"seq": seq, "table": "pairs", "op": "upsert", "row": {**row, "a": f"{long}{seq % 3}"}}
        assert not feed(store, [json.dumps(record).encode()])[1]
    assert store.count(1) == 3
    assert len(store.rows.text) < 4_000_000
    assert int(store.keys.counts[0]) == 1


def test_records_that_are_too_long_are_refused():
    assert scan.RECORD_BYTES_MAX == ingest.RECORD_BYTES_MAX
    row = {"a": "x" * scan.RECORD_BYTES_MAX, "n": 1, "v": 1.5}
    store = RowStore(TABLES)
    _, refused = feed(store, [json.dumps({"seq": 1, "table": "pairs", "op": "insert", "row": row}).encode()])
    assert "over the limit" in refused[0].reason
    assert store.count(1) == 0
