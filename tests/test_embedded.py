"""`tidings.Engine`: standing queries inside a Python process."""

from __future__ import annotations

import datetime as dt
import doctest
import json
import threading
from collections import Counter
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidings
from tidings import Change, Engine, RecordError, RefusedError, SqlError, UsageError, embedded
from tidings.sql.parameters import bind
from tidings.testing import FAMILY_WORKLOADS, Workload
from tidings.testing.oracle import Recomputation
from tidings.testing.plain import canonical

STOCKS = "CREATE TABLE stocks (symbol TEXT PRIMARY KEY, price DOUBLE, listed DATE, at TIMESTAMP, logo BINARY)"


@pytest.fixture
def engine() -> Engine:
    return Engine("CREATE TABLE stocks (symbol TEXT PRIMARY KEY, price DOUBLE)")


def stock(symbol: str, price: object) -> dict[str, object]:
    return {"symbol": symbol, "price": price}


@pytest.mark.parametrize("module", [tidings, embedded], ids=lambda module: module.__name__)
def test_what_help_shows_is_true(module: Any) -> None:
    found = doctest.testmod(module)
    assert found.attempted > 3 and found.failed == 0


@pytest.mark.parametrize("family", [name for name in FAMILY_WORKLOADS if name != "offers"])
def test_views_are_the_answers_after_every_call(family: str) -> None:
    @settings(max_examples=25)
    @given(
        FAMILY_WORKLOADS[family], st.lists(st.sampled_from(["call", "transaction", "save", "subscribe"]), max_size=20)
    )
    def check(workload: Workload, steps: list[str]) -> None:
        engine, plain = Engine(workload.catalog_sql), Recomputation(workload.catalog)
        waiting = [(record["id"], record["sql"]) for record in workload.subscriptions if "sql" in record]
        changes = list(workload.changes)
        told: dict[str, Counter[str]] = {}

        def apply(change: Change) -> None:
            rows = Counter() if change.snapshot else told[change.subscription]
            for each in change.changes:
                rows[canonical(each["row"])] += -1 if each["op"] == "delete" else 1
                if each["op"] == "update":
                    rows[canonical(each["old"])] -= 1
            assert min(rows.values(), default=0) >= 0
            told[change.subscription] = +rows

        def subscribe(id: str, sql: str) -> None:
            if id not in plain.live:
                engine.subscribe(id, sql, on_change=apply)
                plain.register({"id": id, "sql": sql})

        for number, step in enumerate([*["subscribe"] * 2, *steps, "call"]):
            if step == "subscribe" and waiting:
                subscribe(*waiting.pop())
            elif step == "save":
                with TemporaryDirectory() as folder:
                    engine.save(Path(folder) / "engine")
                    engine = Engine.load(Path(folder) / "engine")
                for id in engine.subscriptions:
                    engine.subscribe(id, engine.view(id).sql, on_change=apply)
            else:
                some, changes = changes[: 1 + number % 3], changes[1 + number % 3 :]
                records = [{name: value for name, value in record.items() if name != "seq"} for record in some]
                if step == "transaction":
                    try:
                        with engine.transaction():
                            engine.feed(records)
                    except RefusedError as error:
                        assert error.reasons
                    plain.commit([{**record, "seq": 1000 * number + at} for at, record in enumerate(records, 1)])
                else:
                    engine.feed(records)
                    for at, record in enumerate(records, 1):
                        plain.commit([{**record, "seq": 1000 * number + at}])
            answers = {id: followed.answer for id, followed in plain.live.items()}
            views = {id: Counter(canonical(row) for row in engine.view(id).rows) for id in engine.subscriptions}
            assert views == answers == told

    check()


def test_a_transaction_is_one_change_and_an_exception_undoes_it(engine: Engine) -> None:
    told: list[Change] = []
    view = engine.subscribe("all", "SELECT * FROM stocks WHERE price > 0", on_change=told.append)
    with engine.transaction():
        engine.insert("stocks", stock("A", 1))
        engine.update("stocks", stock("A", 2))
        engine.insert("stocks", stock("B", 3))
        engine.delete("stocks", {"symbol": "B"})
        assert view.rows == []
    assert [change.changes for change in told[1:]] == [[{"op": "insert", "row": {"symbol": "A", "price": 2.0}}]]
    assert told[1].tx == "1"
    with pytest.raises(ZeroDivisionError), engine.transaction():
        engine.delete("stocks", {"symbol": "A"})
        raise ZeroDivisionError
    assert view.rows == [{"symbol": "A", "price": 2.0}] and len(told) == 2
    with pytest.raises(UsageError, match="do not nest"), engine.transaction(), engine.transaction():
        raise AssertionError
    with pytest.raises(UsageError, match="outside of transactions"), engine.transaction():
        engine.subscribe("more", "SELECT * FROM stocks")
    with engine.transaction():
        pass
    assert engine.subscriptions == ["all"]


def test_rows_are_given_in_the_order_of_the_query(engine: Engine) -> None:
    view = engine.subscribe("top", "SELECT * FROM stocks ORDER BY price DESC LIMIT 2")
    for price in (1, 3, 2):
        engine.insert("stocks", stock(f"S{price}", price))
    assert [row["price"] for row in view] == [3.0, 2.0] and len(view) == 2
    assert view.to_arrow().column("symbol").to_pylist() == ["S3", "S2"]
    assert view.to_pandas()["symbol"].tolist() == ["S3", "S2"]
    assert repr(view) == "<view 'top' of 2 rows: SELECT * FROM stocks ORDER BY price DESC LIMIT 2>"
    assert repr(engine) == "<tidings.Engine: tables stocks; 3 rows, 1 subscriptions, seq 4>"


def test_values_are_taken_as_python_has_them() -> None:
    engine = Engine(STOCKS)
    view = engine.subscribe("all", "SELECT * FROM stocks")
    noon = dt.datetime(2026, 1, 31, 12, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    row = {"symbol": "A", "price": Decimal("1.5"), "listed": dt.date(2026, 1, 31), "at": noon, "logo": b"\x00"}
    engine.insert("stocks", row)
    kept = {"symbol": "A", "price": 1.5, "listed": "2026-01-31", "at": "2026-01-31T10:00:00", "logo": "AA=="}
    assert view.rows == [kept]
    engine.update("stocks", json.dumps({**kept, "price": 2}))
    engine.upsert("stocks", {**kept, "price": np.float64(3)})
    assert view.rows == [{**kept, "price": 3.0}]


def test_many_rows_at_once(engine: Engine) -> None:
    view = engine.subscribe("all", "SELECT * FROM stocks WHERE price > 0")
    columns = {"symbol": ["A", "B"], "price": [1.0, 2.0]}
    assert engine.feed(pa.table(columns), "stocks", op="insert").accepted == 2
    assert engine.feed(pd.DataFrame(columns), "stocks").accepted == 2
    found = engine.feed([b'{"table": "stocks", "op": "delete", "row": {"symbol": "A"}}', "nonsense", stock("C", 1)])
    assert found.accepted == 1 and [place for place, _ in found.refused] == [1, 2]
    assert view.rows == [{"symbol": "B", "price": 2.0}]
    with pytest.raises(UsageError, match="need the name of their table"):
        engine.feed(pa.table(columns))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda engine: engine.insert("bonds", {}), "unknown table 'bonds'"),
        (lambda engine: engine.insert("stocks", {"symbol": "A"}), "lacks `price`"),
        (lambda engine: engine.insert("stocks", stock("A", "dear")), "Expected `float"),
        (lambda engine: engine.insert("stocks", stock("A", float("nan"))), "price: nan is not a value; use None"),
        (lambda engine: engine.insert("stocks", stock("A", object())), "a object cannot be a value"),
        (lambda engine: engine.insert("stocks", ["A", 1]), "a row is a dict"),
        (lambda engine: engine.insert("stocks", "{"), "not JSON"),
        (
            lambda engine: engine.update("stocks", stock("A", 1)),
            "update of key 'A', which table 'stocks' does not have",
        ),
        (lambda engine: engine.feed([3]), "a record is a dict or a line of JSON"),
        (lambda engine: engine.view("nobody"), "there is no subscription 'nobody'; there are none"),
        (lambda engine: engine.unsubscribe("nobody"), "there is no subscription 'nobody'"),
        (
            lambda engine: engine.subscribe("a", "SELECT nope FROM stocks"),
            "unknown column 'nope' near 'nope' at line 1",
        ),
        (lambda engine: engine.subscribe("", "SELECT * FROM stocks"), "not a usable subscription event"),
        (lambda _: Engine("CREATE TABLE t (x INT)"), "PRIMARY KEY"),
        (lambda _: Engine.load("nowhere"), "cannot read nowhere"),
        (lambda _: Engine.load(__file__), "was not written by Engine.save"),
    ],
)
def test_mistakes_are_explained_and_change_nothing(engine: Engine, call: Any, said: str) -> None:
    with pytest.raises(tidings.TidingsError) as caught:
        call(engine)
    assert said in str(caught.value)
    assert engine.subscriptions == [] and "0 rows" in repr(engine)


def test_an_id_is_one_query(engine: Engine) -> None:
    told: list[Change] = []
    view = engine.subscribe("a", "SELECT * FROM stocks")
    assert engine.subscribe("a", "SELECT * FROM stocks", on_change=told.append) is view
    with pytest.raises(RefusedError, match="is taken by another query"):
        engine.subscribe("a", "SELECT symbol FROM stocks", on_change=print)
    engine.insert("stocks", stock("A", 1))
    assert [change.snapshot for change in told] == [False]
    engine.unsubscribe("a")
    engine.insert("stocks", stock("B", 1))
    assert len(told) == 1 and engine.subscriptions == []


def test_callbacks_may_call_and_may_fail(engine: Engine) -> None:
    """What a callback changes is told after the change that it was called for; one that fails keeps nobody waiting."""
    told: list[tuple[str, int]] = []

    def copy(change: Change) -> None:
        told.append(("copy", change.seq))
        if change.seq == 4:
            engine.insert("stocks", stock("copy", 0))

    def fail(change: Change) -> None:
        if not change.snapshot:
            raise ValueError(f"at {change.seq}")

    for id, callback in (("a", copy), ("b", fail), ("c", lambda change: told.append(("c", change.seq)))):
        engine.subscribe(id, "SELECT * FROM stocks", on_change=callback)
    told.clear()
    with pytest.raises(ExceptionGroup) as caught:
        engine.insert("stocks", stock("A", 1))
    assert [str(error) for error in caught.value.exceptions] == ["at 4", "at 5"]
    assert told == [("copy", 4), ("c", 4), ("copy", 5), ("c", 5)]
    assert len(engine.view("b")) == 2


def test_threads_may_call(engine: Engine) -> None:
    seqs: list[int] = []
    engine.subscribe("all", "SELECT * FROM stocks", on_change=lambda change: seqs.append(change.seq))

    def insert(first: int) -> None:
        for number in range(first, first + 50):
            engine.insert("stocks", stock(str(number), number))

    threads = [threading.Thread(target=insert, args=(100 * at,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seqs == list(range(1, 202)) and len(engine.view("all")) == 200


VALUES = st.one_of(
    st.text(max_size=10), st.integers(-(2**40), 2**40), st.floats(allow_nan=False, allow_infinity=False, width=32)
)


@given(st.lists(VALUES, min_size=1, max_size=3))
def test_parameters_are_values_whatever_they_hold(values: list[object]) -> None:
    """Nothing in a value can become a part of the query."""
    engine = Engine("CREATE TABLE t (id BIGINT PRIMARY KEY, s TEXT, x DOUBLE)")
    for number, value in enumerate(values):
        column = "s" if isinstance(value, str) else "x"
        view = engine.subscribe(f"q{number}", f"SELECT id FROM t WHERE {column} = :v -- :no '?", {"v": value})
        assert engine.subscribe(f"m{number}", f"SELECT id FROM t WHERE {column} = ?", [value]).sql
        engine.insert("t", {"id": number, "s": None, "x": None} | {column: value})
        assert {"id": number} in view.rows


def test_parameters_that_do_not_fit() -> None:
    assert bind("SELECT ':a', \"?\", x::INT /* ? */ FROM t", {}) == "SELECT ':a', \"?\", x::INT /* ? */ FROM t"
    assert (
        bind("a IN :list AND b = :none AND c", {"list": [1, "o'x"], "none": None})
        == "a IN (1, 'o''x') AND b = NULL AND c"
    )
    for sql, params, said in (
        ("x = :a", {}, "there is no value for this parameter near ':a' at line 1, column 5"),
        ("x =\n ?", [], "near '?' at line 2, column 2"),
        ("x = ?", {"a": 1}, "parameters are named (:name) with a dict"),
        ("x = :a", {"a": float("inf")}, "inf is not a value"),
        ("x = :a", {"a": object()}, "a object cannot be a value of a query"),
        ("x = :a", {"a": 1, "b": 2}, "values without a parameter in the query: b"),
    ):
        with pytest.raises(SqlError) as caught:
            bind(sql, params)  # type: ignore[arg-type]
        assert said in str(caught.value)


def test_a_record_error_is_a_mistake_of_one_record(engine: Engine) -> None:
    assert issubclass(RefusedError, RecordError)
    engine.insert("stocks", stock("A", 1))
    with pytest.raises(RefusedError) as caught, engine.transaction():
        engine.insert("stocks", stock("A", 2))
        engine.insert("stocks", stock("A", 3))
        engine.insert("stocks", stock("B", 4))
    assert len(caught.value.reasons) == 2 and "(and 1 more records refused)" in str(caught.value)
    assert "2 rows" in repr(engine)
