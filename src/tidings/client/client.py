"""A service from Python: `Client`, whose calls wait for their answer."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import httpx2

from tidings.client import calls
from tidings.client.calls import Call, CurrentAnswer, Feedback, Json, Params
from tidings.client.errors import error_of, unreachable
from tidings.client.following import Following
from tidings.client.streaming import Streaming
from tidings.model.record_text import line_of, row_record

if TYPE_CHECKING:
    from tidings.client.followers import Follower, LiveView

T = TypeVar("T")
Records = Iterable[Mapping[str, object] | str | bytes]
_PAGE = 100


def headers_of(key: str | None) -> dict[str, str]:
    """Headers of every request. key: an API key or a JWT; None for a service without them."""
    return {} if key is None else {"authorization": f"Bearer {key}"}


def is_sql(text: str) -> bool:
    """Whether this is a query; otherwise it is an id, which has no white space."""
    return any(character.isspace() for character in text.strip())


def timeout_of(call: Call[Any]) -> httpx2.Timeout:
    return httpx2.Timeout(10.0, read=30.0 + call.wait_seconds, write=60.0, pool=None)


class Client:
    """A Tidings service.

        from tidings.client import Client

        with Client("http://127.0.0.1:8090", key="tk_...") as client:
            client.create("SELECT * FROM stocks WHERE price < 500", id="cheap")
            client.upsert("stocks", {"symbol": "GOOG", "price": 480.0})
            for change in client.subscribe("cheap"):
                print(change.seq, change.changes)

    Every refusal is a `ServiceError`, which is a `tidings.TidingsError`. Any thread may call any method. Answers are dicts
    with the fields of the HTTP contract, if nothing else is said.
    """

    def __init__(self, url: str, key: str | None = None) -> None:
        """url: as `tidings serve` prints it. key: an API key or a JWT; None if the service has no keys."""
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=20)
        self._http = httpx2.Client(base_url=url.rstrip("/"), headers=headers_of(key), limits=limits)

    def _do(self, call: Call[T]) -> T:
        try:
            response = self._http.request(
                call.method,
                call.path,
                params=call.query,
                content=call.body,
                headers=call.headers,
                timeout=timeout_of(call),
            )
        except httpx2.TransportError as cause:
            raise unreachable(str(self._http.base_url), cause) from cause
        if response.status_code >= 300:
            raise error_of(response.status_code, response.headers, response.content)
        return call.read(response.content)

    def close(self) -> None:
        """Closes all connections."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Subscriptions

    def create(
        self,
        sql: str,
        id: str | None = None,
        params: Params = None,
        *,
        targets: Sequence[str] | None = None,
        every_seconds: float | None = None,
        idle_seconds: float | None = None,
        metadata: Mapping[str, object] | None = None,
    ) -> Json:
        """Creates a subscription; without an id the service makes one. The same again changes nothing.

        params: values for `:name` or `?` in the query. targets: webhooks to post changes to. every_seconds: at most one
        notification in this time, with the net change. idle_seconds: it goes when nobody has used it for so long.
        SqlRefused if the query is not supported, IdTaken if another one has the id.
        """
        settings = {"targets": targets, "every_seconds": every_seconds, "idle_seconds": idle_seconds}
        return self._do(calls.create(sql, id, params, {**settings, "metadata": metadata}))

    def edit(
        self,
        id: str,
        sql: str,
        params: Params = None,
        *,
        version: int | None = None,
        targets: Sequence[str] | None = None,
        every_seconds: float | None = None,
        idle_seconds: float | None = None,
        metadata: Mapping[str, object] | None = None,
    ) -> Json:
        """Replaces a subscription as a whole, or creates it: what is not given is as `create` has it by default.

        Followers get a snapshot of the new answer, and miss nothing. version: VersionMismatch if it is no longer this one.
        """
        settings = {"targets": targets, "every_seconds": every_seconds, "idle_seconds": idle_seconds}
        return self._do(calls.edit(id, sql, params, version, {**settings, "metadata": metadata}))

    def get(self, id: str) -> Json:
        """A subscription: its query, family, columns, state and settings. NotFound if there is none."""
        return self._do(calls.ask("GET", calls.path_of(id)))

    def list(self, *, family: str | None = None, state: str | None = None) -> Iterator[Json]:
        """All subscriptions, in the order of their ids, fetched as the iterator gets to them."""
        after = None
        while True:
            page = self._do(calls.ask("GET", "/v1/subscriptions", limit=_PAGE, after=after, family=family, state=state))
            yield from page["subscriptions"]
            after = page["next"]
            if after is None:
                return

    def drop(self, id: str) -> Json:
        """Ends a subscription; followers get an end."""
        return self._do(calls.ask("DELETE", calls.path_of(id)))

    def bulk(self, lines: Iterable[Mapping[str, object]]) -> calls.Answers:
        """Creates and drops many: `{"id": .., "sql": ..}` or `{"id": .., "drop": True}`. Gives an answer for each, in order:
        `line` (from 1 on), `id`, `status`, and `seq` or `error`. Raises nothing for lines that are refused."""
        return [answer for call in calls.bulk(lines) for answer in self._do(call)]

    def explain(self, sql: str, params: Params = None) -> Json:
        """What a query would be served as, and what it would cost. Creates nothing."""
        return self._do(calls.ask("POST", "/v1/explain", {"sql": sql, "params": params}))

    def about(self) -> Json:
        """The service: version, engine, epoch, limits, retention."""
        return self._do(calls.ask("GET", "/v1/about"))

    def catalog(self) -> Json:
        """The tables: `tables`, each with `name`, `key` and `columns`."""
        return self._do(calls.ask("GET", "/v1/catalog"))

    # Answers and their changes

    def rows(self, id: str) -> CurrentAnswer:
        """The answer now: `.rows`, and the `.position` from which to follow it."""
        return self._do(calls.rows(id))

    def changes(self, id: str, after: str | None = None, wait_seconds: float = 20, *, limit: int | None = None) -> Json:
        """What has changed behind a position, as `notifications`; waits up to `wait_seconds` for the first one.

        Go on with `after=answer["position"]`. Without a position a snapshot comes first. PositionExpired if the service no
        longer has what came behind it. For a loop that never misses anything, `subscribe` is simpler.
        """
        return self._do(calls.changes(id, after, wait_seconds, limit))

    def subscribe(
        self, sql_or_id: str, *more_ids: str, id: str | None = None, params: Params = None, after: str | None = None
    ) -> Follower:
        """Follows a query, or subscriptions that exist: an iterator of `Change`, first the whole answer (`snapshot`).

            with client.subscribe("SELECT symbol FROM stocks WHERE price < :limit", params={"limit": 500}) as changes:
                for change in changes:
                    print(change.changes, changes.view.rows)

        A query is created first; with an `id` it stays, without one it is dropped when the iterator is closed, or when nobody
        has followed it for an hour. Several ids share a connection. after: a position (`changes.position`, or of `rows`) to go
        on from, without a snapshot.
        """
        from tidings.client.followers import Follower
        from tidings.client.views import FollowedView

        if not is_sql(sql_or_id):
            found = [self.get(each) for each in (sql_or_id, *more_ids)]
            made = None
        else:
            calls.check_one_query(more_ids, after)
            found = [self.create(sql_or_id, id, params, idle_seconds=calls.idle_seconds(id))]
            made = found[0]["id"] if id is None else None
        views = [FollowedView(each["id"], each["sql"], each.get("order")) for each in found]
        return Follower(self._http, views, after, None if made is None else lambda: self.drop(made))

    def view(self, id: str) -> LiveView:
        """The answer of a subscription, kept up to date by a thread: `.rows` is the answer now. Waits for the first one."""
        from tidings.client.followers import LiveView

        found = self.get(id)
        return LiveView(found["id"], found["sql"], found.get("order")).follow(self._http)

    def lines(self, *ids: str, after: str | None = None) -> Generator[str, None, None]:
        """Notifications as the service writes them, lines of out.jsonl; a large one comes in several, with `part`."""
        stream = Streaming(self._http, Following(ids, after), lambda seq: None)
        try:
            for told in stream:
                yield from told.lines
        finally:
            stream.close()

    def token(self, ids: Sequence[str], ttl_seconds: int = 300) -> Json:
        """A token that may follow these subscriptions and nothing else, for a browser: `token`, `expires_at`."""
        return self._do(calls.ask("POST", "/v1/tokens", {"subscriptions": ids, "ttl_seconds": ttl_seconds}))

    # Changes of rows

    def feed(self, records: Records, producer: str | None = None) -> Feedback:
        """Sends records as lines of changes.jsonl have them, `{"table": .., "op": .., "row": {..}}`, as dicts or texts.

        Many go in several requests; a transaction (records with the same `tx`) is never split. When the call is back, the
        changes are durable and every answer has them. Records that cannot be used are in the result. producer: a name under
        which a repeated `seq` is refused, so that sending the same again after a failure is safe.
        """
        return calls.together([self._do(call) for call in calls.feed(map(line_of, records), producer)])

    def insert(self, table: str, row: Mapping[str, object] | str) -> Feedback:
        """Adds a row. RefusedError if there is one with its key, or it does not fit the table."""
        return self._change(table, "insert", row)

    def update(self, table: str, row: Mapping[str, object] | str) -> Feedback:
        """Replaces the row that has this key, by a whole row. RefusedError if there is none."""
        return self._change(table, "update", row)

    def upsert(self, table: str, row: Mapping[str, object] | str) -> Feedback:
        """Adds a row, or replaces the one that has its key."""
        return self._change(table, "upsert", row)

    def delete(self, table: str, row: Mapping[str, object] | str) -> Feedback:
        """Removes the row that has this key; other columns need not be given. RefusedError if there is none."""
        return self._change(table, "delete", row)

    def _change(self, table: str, op: str, row: Mapping[str, object] | str) -> Feedback:
        return calls.unrefused(self.feed([row_record(table, op, row)]))

    # Webhook targets

    def create_target(
        self, url: str, id: str | None = None, *, batch: int = 1, every_seconds: float = 0, format: str = "json"
    ) -> Json:
        """A URL to which changes are posted. The answer has the `secret` that signs them, this once."""
        body = {"id": id, "url": url, "batch": batch, "every_seconds": every_seconds, "format": format}
        return self._do(calls.ask("POST", "/v1/targets", body))

    def edit_target(self, id: str, url: str, *, batch: int = 1, every_seconds: float = 0, format: str = "json") -> Json:
        """Replaces a target as a whole; what is pending is sent to the new URL."""
        body = {"url": url, "batch": batch, "every_seconds": every_seconds, "format": format}
        return self._do(calls.ask("PUT", calls.path_of(id, kind="targets"), body))

    def get_target(self, id: str) -> Json:
        """A target: `state`, `pending`, `dead`, `last_error`."""
        return self._do(calls.ask("GET", calls.path_of(id, kind="targets")))

    def drop_target(self, id: str) -> Json:
        """Removes a target; nothing more is posted."""
        return self._do(calls.ask("DELETE", calls.path_of(id, kind="targets")))

    def target_action(self, id: str, action: str) -> Json:
        """`rotate` the secret, send a `test`, or `resume` one that is paused or gone."""
        return self._do(calls.target_action(id, action))

    def target_attempts(self, id: str) -> Json:
        """The last requests to a target, and what came of them."""
        return self._do(calls.ask("GET", calls.path_of(id, kind="targets", end="/attempts")))

    def dead_letters(self, id: str, *, after: str | None = None, limit: int | None = None) -> Json:
        """What could not be delivered, after the last try."""
        path = calls.path_of(id, kind="targets", end="/dead-letters")
        return self._do(calls.ask("GET", path, after=after, limit=limit))

    def replay_dead_letters(self, id: str) -> Json:
        """Sends dead letters again."""
        return self._do(calls.ask("POST", calls.path_of(id, kind="targets", end="/dead-letters/replay")))
