"""A service from asyncio: `AsyncClient`, the same as `Client` with `await`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TypeVar

import httpx2

from tidings.client import calls
from tidings.client.calls import Call, CurrentAnswer, Feedback, Json, Params
from tidings.client.client import Records, headers_of, is_sql, timeout_of
from tidings.client.errors import error_of, unreachable
from tidings.client.followers import AsyncFollower, AsyncLiveView, Begun
from tidings.client.following import Following
from tidings.client.streaming_async import AsyncStreaming
from tidings.client.views import FollowedView
from tidings.model.record_text import line_of, row_record

T = TypeVar("T")
_PAGE = 100


class AsyncClient:
    """A Tidings service, for asyncio.

        async with AsyncClient("http://127.0.0.1:8090", key="tk_...") as client:
            await client.create("SELECT * FROM stocks WHERE price < 500", id="cheap")
            async for change in client.subscribe("cheap"):
                print(change.seq, change.changes)

    Methods are those of `Client`, and are awaited; `subscribe`, `list` and `lines` are iterated over instead.
    """

    def __init__(self, url: str, key: str | None = None) -> None:
        """url: as `tidings serve` prints it. key: an API key or a JWT; None if the service has no keys."""
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=20)
        self._http = httpx2.AsyncClient(base_url=url.rstrip("/"), headers=headers_of(key), limits=limits)

    async def _do(self, call: Call[T]) -> T:
        try:
            response = await self._http.request(
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

    async def close(self) -> None:
        """Closes all connections."""
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # Subscriptions

    async def create(
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
        return await self._do(calls.create(sql, id, params, {**settings, "metadata": metadata}))

    async def edit(
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
        return await self._do(calls.edit(id, sql, params, version, {**settings, "metadata": metadata}))

    async def get(self, id: str) -> Json:
        """A subscription: its query, family, columns, state and settings. NotFound if there is none."""
        return await self._do(calls.ask("GET", calls.path_of(id)))

    async def list(self, *, family: str | None = None, state: str | None = None) -> AsyncIterator[Json]:
        """All subscriptions, in the order of their ids, fetched as the iterator gets to them."""
        after = None
        while True:
            page = await self._do(
                calls.ask("GET", "/v1/subscriptions", limit=_PAGE, after=after, family=family, state=state)
            )
            for each in page["subscriptions"]:
                yield each
            after = page["next"]
            if after is None:
                return

    async def drop(self, id: str) -> Json:
        """Ends a subscription; followers get an end."""
        return await self._do(calls.ask("DELETE", calls.path_of(id)))

    async def bulk(self, lines: Iterable[Mapping[str, object]]) -> calls.Answers:
        """Creates and drops many: `{"id": .., "sql": ..}` or `{"id": .., "drop": True}`. Gives an answer for each, in order:
        `line` (from 1 on), `id`, `status`, and `seq` or `error`. Raises nothing for lines that are refused."""
        return [answer for call in calls.bulk(lines) for answer in await self._do(call)]

    async def explain(self, sql: str, params: Params = None) -> Json:
        """What a query would be served as, and what it would cost. Creates nothing."""
        return await self._do(calls.ask("POST", "/v1/explain", {"sql": sql, "params": params}))

    async def about(self) -> Json:
        """The service: version, engine, epoch, limits, retention."""
        return await self._do(calls.ask("GET", "/v1/about"))

    async def catalog(self) -> Json:
        """The tables: `tables`, each with `name`, `key` and `columns`."""
        return await self._do(calls.ask("GET", "/v1/catalog"))

    # Answers and their changes

    async def rows(self, id: str) -> CurrentAnswer:
        """The answer now: `.rows`, and the `.position` from which to follow it."""
        return await self._do(calls.rows(id))

    async def changes(
        self, id: str, after: str | None = None, wait_seconds: float = 20, *, limit: int | None = None
    ) -> Json:
        """What has changed behind a position, as `notifications`; waits up to `wait_seconds` for the first one.

        Go on with `after=answer["position"]`. Without a position a snapshot comes first. PositionExpired if the service no
        longer has what came behind it. For a loop that never misses anything, `subscribe` is simpler.
        """
        return await self._do(calls.changes(id, after, wait_seconds, limit))

    def subscribe(
        self, sql_or_id: str, *more_ids: str, id: str | None = None, params: Params = None, after: str | None = None
    ) -> AsyncFollower:
        """Follows a query, or subscriptions that exist: an iterator of `Change`, first the whole answer (`snapshot`).

            async with client.subscribe("SELECT symbol FROM stocks WHERE price < 500") as changes:
                async for change in changes:
                    print(change.changes, changes.view.rows)

        Not awaited. `async for change in client.subscribe(..)` does without the block, which closes the stream at its end.
        A query is created first; with an `id` it stays, without one it is dropped when the iterator is closed, or when nobody
        has followed it for an hour. Several ids share a connection. after: a position (`changes.position`, or of `rows`) to go
        on from, without a snapshot.
        """
        if is_sql(sql_or_id):
            calls.check_one_query(more_ids, after)

        async def begin() -> Begun:
            if not is_sql(sql_or_id):
                found = [await self.get(each) for each in (sql_or_id, *more_ids)]
                return Begun([FollowedView(each["id"], each["sql"], each.get("order")) for each in found])
            made = await self.create(sql_or_id, id, params, idle_seconds=calls.idle_seconds(id))
            view = FollowedView(made["id"], made["sql"], made.get("order"))
            return Begun([view], None if id is not None else lambda: self.drop(view.id))

        return AsyncFollower(self._http, begin, after)

    async def view(self, id: str) -> AsyncLiveView:
        """The answer of a subscription, kept up to date by a task: `.rows` is the answer now. Waits for the first one."""
        found = await self.get(id)
        return await AsyncLiveView(found["id"], found["sql"], found.get("order")).follow(self._http)

    async def lines(self, *ids: str, after: str | None = None) -> AsyncIterator[str]:
        """Notifications as the service writes them, lines of out.jsonl; a large one comes in several, with `part`."""
        stream = AsyncStreaming(self._http, Following(ids, after), lambda seq: None)
        try:
            async for told in stream:
                for line in told.lines:
                    yield line
        finally:
            await stream.close()

    async def token(self, ids: Sequence[str], ttl_seconds: int = 300) -> Json:
        """A token that may follow these subscriptions and nothing else, for a browser: `token`, `expires_at`."""
        return await self._do(calls.ask("POST", "/v1/tokens", {"subscriptions": ids, "ttl_seconds": ttl_seconds}))

    # Changes of rows

    async def feed(self, records: Records, producer: str | None = None) -> Feedback:
        """Sends records as lines of changes.jsonl have them, `{"table": .., "op": .., "row": {..}}`, as dicts or texts.

        Many go in several requests; a transaction (records with the same `tx`) is never split. When the call is back, the
        changes are durable and every answer has them. Records that cannot be used are in the result. producer: a name under
        which a repeated `seq` is refused, so that sending the same again after a failure is safe.
        """
        return calls.together([await self._do(call) for call in calls.feed(map(line_of, records), producer)])

    async def insert(self, table: str, row: Mapping[str, object] | str) -> Feedback:
        """Adds a row. RefusedError if there is one with its key, or it does not fit the table."""
        return await self._change(table, "insert", row)

    async def update(self, table: str, row: Mapping[str, object] | str) -> Feedback:
        """Replaces the row that has this key, by a whole row. RefusedError if there is none."""
        return await self._change(table, "update", row)

    async def upsert(self, table: str, row: Mapping[str, object] | str) -> Feedback:
        """Adds a row, or replaces the one that has its key."""
        return await self._change(table, "upsert", row)

    async def delete(self, table: str, row: Mapping[str, object] | str) -> Feedback:
        """Removes the row that has this key; other columns need not be given. RefusedError if there is none."""
        return await self._change(table, "delete", row)

    async def _change(self, table: str, op: str, row: Mapping[str, object] | str) -> Feedback:
        return calls.unrefused(await self.feed([row_record(table, op, row)]))

    # Webhook targets

    async def create_target(
        self, url: str, id: str | None = None, *, batch: int = 1, every_seconds: float = 0, format: str = "json"
    ) -> Json:
        """A URL to which changes are posted. The answer has the `secret` that signs them, this once."""
        body = {"id": id, "url": url, "batch": batch, "every_seconds": every_seconds, "format": format}
        return await self._do(calls.ask("POST", "/v1/targets", body))

    async def edit_target(
        self, id: str, url: str, *, batch: int = 1, every_seconds: float = 0, format: str = "json"
    ) -> Json:
        """Replaces a target as a whole; what is pending is sent to the new URL."""
        body = {"url": url, "batch": batch, "every_seconds": every_seconds, "format": format}
        return await self._do(calls.ask("PUT", calls.path_of(id, kind="targets"), body))

    async def get_target(self, id: str) -> Json:
        """A target: `state`, `pending`, `dead`, `last_error`."""
        return await self._do(calls.ask("GET", calls.path_of(id, kind="targets")))

    async def drop_target(self, id: str) -> Json:
        """Removes a target; nothing more is posted."""
        return await self._do(calls.ask("DELETE", calls.path_of(id, kind="targets")))

    async def target_action(self, id: str, action: str) -> Json:
        """`rotate` the secret, send a `test`, or `resume` one that is paused or gone."""
        return await self._do(calls.target_action(id, action))

    async def target_attempts(self, id: str) -> Json:
        """The last requests to a target, and what came of them."""
        return await self._do(calls.ask("GET", calls.path_of(id, kind="targets", end="/attempts")))

    async def dead_letters(self, id: str, *, after: str | None = None, limit: int | None = None) -> Json:
        """What could not be delivered, after the last try."""
        path = calls.path_of(id, kind="targets", end="/dead-letters")
        return await self._do(calls.ask("GET", path, after=after, limit=limit))

    async def replay_dead_letters(self, id: str) -> Json:
        """Sends dead letters again."""
        return await self._do(calls.ask("POST", calls.path_of(id, kind="targets", end="/dead-letters/replay")))
