"""Standing queries inside a Python process: rows in, changes of answers out, by function calls."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tidings.files import write_bytes
from tidings.model.blob import pack, unpack
from tidings.model.errors import RecordError, UsageError
from tidings.model.notification import NotificationBatch
from tidings.model.record_text import line_of, row_record
from tidings.model.row_bag import RowBag, RowChange, decode_tail
from tidings.pipeline.live import Live, Output
from tidings.sql import Compiler, parse_catalog
from tidings.sql.parameters import bind

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Row = dict[str, Any]
_FORMAT = 1


_row = msgspec.json.Decoder(dict[str, Any]).decode


class Change(msgspec.Struct, frozen=True):
    """What a subscription is told: how its answer has changed.

    seq: when, in the order of all changes. snapshot: this is the whole answer, not a difference. changes: dicts with `op`
    (insert, update or delete), `row`, and for an update `old`. tx: the transaction, if it was one.
    """

    subscription: str
    seq: int
    snapshot: bool
    changes: list[dict[str, Any]]
    tx: str | None = None


class RefusedError(RecordError):
    """Records could not be used, and changed nothing. reasons: of each."""

    def __init__(self, reasons: Sequence[str]) -> None:
        self.reasons = list(reasons)
        more = f" (and {len(reasons) - 1:,} more records refused)" if len(reasons) > 1 else ""
        super().__init__(f"{reasons[0]}{more}")


class Fed(msgspec.Struct, frozen=True):
    """What became of records. refused: (place among the records, from 0 on; reason) of those that could not be used."""

    accepted: int
    refused: list[tuple[int, str]]


class View:
    """The answer of one subscription, kept up to date. The same object changes with the answer."""

    def __init__(self, id: str, sql: str, order: tuple[str, bool] | None) -> None:
        self.id = id
        self.sql = sql
        self._order = order
        self._bag = RowBag()

    @property
    def seq(self) -> int:
        """The last change that the answer has had."""
        return self._bag.seq

    @property
    def rows(self) -> list[Row]:
        """The rows now; of a query with ORDER BY in this order, if the column is shown."""
        found = [_row(text) for text in self._bag.rows()]
        if self._order is not None and all(self._order[0] in row for row in found):
            name, is_descending = self._order
            found.sort(key=lambda row: row[name], reverse=is_descending)
        return found

    def to_arrow(self) -> pa.Table:
        """The rows as a table of Arrow."""
        import pyarrow as pa

        return pa.Table.from_pylist(self.rows)

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a data frame of pandas, which must be installed."""
        import pandas as pd

        return pd.DataFrame(self.rows)

    def __len__(self) -> int:
        return len(self._bag)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __repr__(self) -> str:
        return f"<view {self.id!r} of {len(self)} rows: {self.sql}>"


class Engine:
    """Tables, and subscriptions whose answers are kept up to date while rows come and go.

    >>> from tidings import Engine
    >>> engine = Engine("CREATE TABLE stocks (symbol TEXT PRIMARY KEY, price DOUBLE)")
    >>> cheap = engine.subscribe("cheap", "SELECT * FROM stocks WHERE price < 500")
    >>> engine.insert("stocks", {"symbol": "GOOG", "price": 480.0})
    >>> cheap.rows
    [{'symbol': 'GOOG', 'price': 480.0}]

    Any thread may call any method; calls wait for each other. Callbacks run in the thread whose call made the change, after
    it has been made, one at a time and in order. A callback may call the engine: what that changes is told afterwards.
    """

    def __init__(self, catalog: str) -> None:
        """catalog: CREATE TABLE statements. CatalogError if they cannot be used."""
        self._catalog_sql = catalog
        parsed = parse_catalog(catalog)
        self._live = Live(parsed)
        self._compiler = Compiler(parsed)
        self._views: dict[str, View] = {}
        self._callbacks: dict[str, Callable[[Change], object]] = {}
        self._lock = threading.RLock()
        self._gathered: list[bytes] | None = None
        self._transactions = 0
        self._waiting: deque[tuple[Callable[[Change], object], Change]] = deque()
        self._is_telling = False

    # Subscriptions

    def subscribe(
        self,
        id: str,
        sql: str,
        params: Mapping[str, object] | Sequence[object] | None = None,
        on_change: Callable[[Change], object] | None = None,
    ) -> View:
        """A standing query. Gives its view, whose rows are the answer from now on.

        params: values for `:name` or `?` in the query. on_change: called with a `Change`, first with the whole answer
        (`snapshot`), then with every difference. A query that is there already under the same id is left as it is, and gets
        the callback; another query under a taken id is refused. SqlError if the query is not supported.
        """
        text = bind(sql, params)
        with self._lock:
            self._check_outside()
            shape = self._compiler.compile(text).shape
            known = self._views.get(id)
            if known is None:
                order = None if shape.order is None else (shape.order.column.column, shape.order.descending)
                self._views[id] = View(id, text, order)
            if on_change is not None and known is None:
                self._callbacks[id] = on_change
            try:
                self._run([], [msgspec.json.encode({"id": id, "sql": text})])
            except RefusedError:
                if known is None:
                    del self._views[id]
                    self._callbacks.pop(id, None)
                raise
            if on_change is not None:
                self._callbacks[id] = on_change
            return self._views[id]

    def unsubscribe(self, id: str) -> None:
        """Ends a subscription."""
        with self._lock:
            self._check_outside()
            self._known(id)
            self._run([], [msgspec.json.encode({"id": id, "drop": True})])
            del self._views[id]
            self._callbacks.pop(id, None)

    def view(self, id: str) -> View:
        """The view of a subscription."""
        with self._lock:
            return self._known(id)

    @property
    def subscriptions(self) -> list[str]:
        """Ids of all subscriptions."""
        with self._lock:
            return list(self._views)

    def _check_outside(self) -> None:
        if self._gathered is not None:
            raise UsageError("subscriptions come and go outside of transactions")

    def _known(self, id: str) -> View:
        if id not in self._views:
            raise UsageError(f"there is no subscription {id!r}; there are {_some(self._views)}")
        return self._views[id]

    # Changes

    def insert(self, table: str, row: Mapping[str, object] | str) -> None:
        """Adds a row. RefusedError if there is one with its key, or it does not fit the table."""
        self._change(table, "insert", row)

    def update(self, table: str, row: Mapping[str, object] | str) -> None:
        """Replaces the row that has this key, by a whole row. RefusedError if there is none."""
        self._change(table, "update", row)

    def upsert(self, table: str, row: Mapping[str, object] | str) -> None:
        """Adds a row, or replaces the one that has its key."""
        self._change(table, "upsert", row)

    def delete(self, table: str, row: Mapping[str, object] | str) -> None:
        """Removes the row that has this key; other columns need not be given. RefusedError if there is none."""
        self._change(table, "delete", row)

    def _change(self, table: str, op: str, row: Mapping[str, object] | str) -> None:
        with self._lock:
            self._take([row_record(table, op, row)])

    def feed(
        self,
        records: Iterable[Mapping[str, object] | str | bytes] | pa.Table | pa.RecordBatch | pd.DataFrame,
        table: str | None = None,
        op: str = "upsert",
    ) -> Fed:
        """Many changes as one micro-batch, in their order.

        records: as lines of `changes.jsonl` have them, `{"table": .., "op": .., "row": {..}}`, as dicts or texts. With `table`
        they are its rows, all with the same `op`: dicts, a table of Arrow or a data frame of pandas. Records that cannot be
        used change nothing and are in the result.
        """
        if hasattr(records, "to_pylist"):
            rows: Iterable[Any] = records.to_pylist()
        elif hasattr(records, "to_dict"):
            rows = records.to_dict("records")
        else:
            rows = records
        if table is None and (hasattr(records, "to_pylist") or hasattr(records, "to_dict")):
            raise UsageError("rows in columns need the name of their table: feed(rows, table='stocks')")
        lines = [line_of(row) if table is None else row_record(table, op, row) for row in rows]
        with self._lock:
            if self._gathered is not None:
                self._gathered += lines
                return Fed(len(lines), [])
            found = self._apply(lines, [])
            refused = [(entry.position, entry.reason) for entry in found.refused]
            self._tell()
            return Fed(len(lines) - len(refused), refused)

    @contextmanager
    def transaction(self) -> Iterator[Engine]:
        """All changes within are one: everybody is told their net effect, once, when the block ends.

        If the block raises, nothing is changed. Answers within the block are those from before it. At its end records that
        cannot be used are refused, and the others count: RefusedError says which.
        """
        with self._lock:
            if self._gathered is not None:
                raise UsageError("a transaction is open already; they do not nest")
            self._gathered = []
            try:
                yield self
                gathered = self._gathered
            finally:
                self._gathered = None
            self._transactions += 1
            tx = b'{"tx": "%d", ' % self._transactions
            self._take([tx + line[1:] for line in gathered])

    def _take(self, lines: list[bytes]) -> None:
        if self._gathered is not None:
            self._gathered += lines
        elif lines:
            self._run(lines, [])

    def _run(self, lines: list[bytes], events: list[bytes]) -> None:
        """A micro-batch. RefusedError if something of it is refused; the rest is done and told first."""
        found = self._apply(lines, events)
        reasons = [answer.refused for answer in found.answers if answer.refused is not None]
        reasons += [entry.reason for entry in found.refused]
        self._tell()
        if reasons:
            raise RefusedError(reasons)

    def _apply(self, lines: list[bytes], events: list[bytes]) -> Output:
        found = self._live.apply(self._live.take(lines, events))
        if len(found.told):
            self._fold(found.told)
        return found

    def _fold(self, told: NotificationBatch) -> None:
        texts = told.tails.arrow()
        # Several share a tail; that of a net effect of nothing is empty, and nobody's.
        tails = {number: decode_tail(texts[number].as_py()) for number in set(told.tail.tolist())}
        for id, number in zip(told.subscriptions().to_pylist(), told.tail.tolist(), strict=True):
            tail = tails[number]
            self._views[id]._bag.fold(tail)
            if (callback := self._callbacks.get(id)) is not None:
                # Everybody gets dicts of their own, and may do with them as they please.
                changes = [_shown(change) for change in tail.changes]
                self._waiting.append((callback, Change(id, tail.seq, tail.snapshot, changes, tail.tx)))

    def _tell(self) -> None:
        """Calls callbacks; one that raises does not keep others from being called."""
        if self._is_telling:
            return
        failed: list[Exception] = []
        self._is_telling = True
        try:
            while self._waiting:
                callback, change = self._waiting.popleft()
                try:
                    callback(change)
                except Exception as error:
                    failed.append(error)
        finally:
            self._is_telling = False
        if len(failed) == 1:
            raise failed[0]
        if failed:
            raise ExceptionGroup("callbacks of subscriptions failed", failed)

    # The whole

    @property
    def seq(self) -> int:
        """The number of the last change. Each change has the next one, and so has each subscription that comes or goes."""
        with self._lock:
            return self._live.replica.passed

    def save(self, path: str | Path) -> None:
        """Writes tables, subscriptions and views to a file, which is there whole or not at all. Callbacks are not saved."""
        with self._lock:
            views = [
                [view.id, view.sql, view._order, view.seq, list(view._bag.texts.items())]
                for view in self._views.values()
            ]
            head = {"format": _FORMAT, "catalog": self._catalog_sql, "transactions": self._transactions, "views": views}
            data = pack(head)
            write_bytes(Path(path), [len(data).to_bytes(8, "little"), data, self._live.dump()])

    @staticmethod
    def load(path: str | Path) -> Engine:
        """An engine as it was saved. To be called again, subscribe with the same id and query."""
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise UsageError(f"cannot read {path}: {error.strerror}") from None
        stop = 8 + int.from_bytes(data[:8], "little")
        try:
            head = unpack(data[8:stop])
            is_known = head["format"] == _FORMAT
        except (msgspec.MsgspecError, TypeError, KeyError):
            raise UsageError(f"{path} was not written by Engine.save") from None
        if not is_known:
            raise UsageError(f"{path} is of format {head['format']}; this version of Tidings reads {_FORMAT}")
        engine = Engine(head["catalog"])
        engine._live.load(data[stop:])
        engine._transactions = head["transactions"]
        for id, sql, order, seq, texts in head["views"]:
            view = engine._views[id] = View(id, sql, None if order is None else (order[0], order[1]))
            view._bag.seq = seq
            view._bag.texts.update(dict(texts))
        return engine

    def __repr__(self) -> str:
        with self._lock:
            tables = ", ".join(table.name for table in self._live.replica.catalog.tables)
            rows = self._live.replica.store.row_count
            return (
                f"<tidings.Engine: tables {tables}; {rows:,} rows, {len(self._views):,} subscriptions, seq {self.seq}>"
            )


def _shown(change: RowChange) -> dict[str, Any]:
    old = {"old": _row(change.old)} if change.op == "update" else {}
    return {"op": change.op, **old, "row": _row(change.row)}


def _some(names: Iterable[str]) -> str:
    found = sorted(names)
    return ", ".join(map(repr, found[:5])) + (", .." if len(found) > 5 else "") if found else "none"
