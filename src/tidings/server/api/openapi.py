"""The OpenAPI description, made from the types that the routes decode."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from tidings import __version__
from tidings.server.api import answers, bodies
from tidings.server.api.errors import STATUS
from tidings.server.api.http import NUMBER_MAX
from tidings.server.api.operations import PRODUCER_PATTERN
from tidings.server.api.subscriptions import IF_MATCH_PATTERN

_BODIES = (
    bodies.SubscriptionBody,
    bodies.BulkLine,
    bodies.QueryBody,
    bodies.TargetBody,
    bodies.NewTenantBody,
    bodies.TenantBody,
    bodies.KeyBody,
    bodies.TokenBody,
)
_ERROR = {
    "type": "object",
    "required": ["error", "what", "request_id"],
    "properties": {
        "error": {"enum": sorted(STATUS)},
        "what": {"type": "string"},
        "detail": {"type": ["string", "null"]},
        "hint": {"type": ["string", "null"]},
        "at": {
            "type": ["object", "null"],
            "properties": {"line": {"type": "integer"}, "column": {"type": "integer"}, "text": {"type": "string"}},
        },
        "request_id": {"type": "string"},
    },
}


def _parameter(name: str, schema: dict[str, Any], where: str = "query") -> dict[str, Any]:
    return {"name": name, "in": where, "required": where == "path", "schema": schema}


def _path(name: str) -> dict[str, Any]:
    return _parameter(name, {"type": "string", "pattern": bodies.SHOWN_PATTERN}, "path")


_ID, _T = _path("id"), _path("t")
_POSITION = {"type": "string", "pattern": "^[A-Za-z0-9]{1,32}-[0-9]{1,18}$"}
_LIMIT = _parameter("limit", {"type": "integer", "minimum": 1, "maximum": 1000})
_AFTER_NUMBER = _parameter("after", {"type": "integer", "minimum": 0, "maximum": NUMBER_MAX})
_TOKEN = _parameter("token", {"type": "string"})
_STREAM = [
    _parameter("after", _POSITION),
    _parameter("every_seconds", {"type": "number", "minimum": 0, "maximum": 86400}),
    _parameter("behind", {"enum": ["coalesce", "every", "disconnect"]}),
    _TOKEN,
    _parameter("Last-Event-ID", _POSITION, "header"),
]
_LINES = "application/x-ndjson"


class _Operation(msgspec.Struct):
    """path, method, what it does; answer: its type by status of success; body: its type, or the media type of lines."""

    path: str
    method: str
    summary: str
    answer: dict[int, Any]
    body: type | str | None = None
    parameters: list[dict[str, Any]] = []
    errors: tuple[int, ...] = ()
    """Those that not all of its kind have."""
    media: str = "application/json"
    is_open: bool = False
    """Whether it needs no key."""


_ONE, _TARGET, _TENANT = "/v1/subscriptions/{id}", "/v1/targets/{id}", "/v1/tenants/{t}"
_OPERATIONS = [
    _Operation("/healthz", "get", "Whether the process lives", {200: answers.Health}, is_open=True),
    _Operation("/readyz", "get", "Whether it serves", {200: answers.Readiness, 503: answers.Readiness}, is_open=True),
    _Operation("/metrics", "get", "Figures for Prometheus", {200: str}, media="text/plain"),
    _Operation("/openapi.json", "get", "This description", {200: dict[str, Any]}, is_open=True),
    _Operation("/client.js", "get", "The JavaScript client", {200: str}, media="text/javascript", is_open=True),
    _Operation("/v1/about", "get", "Version, engine, limits and retention", {200: answers.About}),
    _Operation("/v1/catalog", "get", "Tables and columns", {200: answers.Tables}),
    _Operation(
        "/v1/subscriptions",
        "post",
        "Create a subscription",
        dict.fromkeys((200, 201, 202), answers.Shown),
        bodies.SubscriptionBody,
        errors=(404, 409, 422, 429),
    ),
    _Operation(
        "/v1/subscriptions",
        "get",
        "List subscriptions",
        {200: answers.SubscriptionPage},
        parameters=[_LIMIT, *(_parameter(name, {"type": "string"}) for name in ("after", "family", "state"))],
    ),
    _Operation(_ONE, "get", "One subscription", {200: answers.Shown}, parameters=[_ID]),
    _Operation(
        _ONE,
        "put",
        "Replace a subscription, or create it",
        dict.fromkeys((200, 201, 202), answers.Shown),
        bodies.SubscriptionBody,
        [_ID, _parameter("If-Match", {"type": "string", "pattern": IF_MATCH_PATTERN}, "header")],
        (412, 422, 429),
    ),
    _Operation(_ONE, "delete", "Drop a subscription", {200: answers.DroppedSubscription}, parameters=[_ID]),
    _Operation("/v1/bulk", "post", "Create and drop many subscriptions: a line each", {200: str}, _LINES, media=_LINES),
    _Operation(
        "/v1/explain",
        "post",
        "What the service makes of a query",
        {200: answers.Explained},
        bodies.QueryBody,
        errors=(422,),
    ),
    _Operation("/v1/tokens", "post", "A token for a browser", {201: answers.Token}, bodies.TokenBody, errors=(404,)),
    _Operation(f"{_ONE}/rows", "get", "The rows now", {200: answers.Rows}, parameters=[_ID, _TOKEN]),
    _Operation(
        f"{_ONE}/changes",
        "get",
        "Changes behind a position; waits for some",
        {200: answers.Polled},
        parameters=[
            _ID,
            _parameter("after", _POSITION),
            _parameter("limit", {"type": "integer", "minimum": 1, "maximum": 10000}),
            _parameter("wait_seconds", {"type": "number", "minimum": 0, "maximum": 60}),
            _TOKEN,
        ],
        errors=(410, 429),
    ),
    _Operation(
        f"{_ONE}/stream",
        "get",
        "Changes as server-sent events",
        {200: str},
        parameters=[_ID, *_STREAM],
        errors=(429,),
        media="text/event-stream",
    ),
    _Operation(
        "/v1/stream",
        "get",
        "Changes of several subscriptions as server-sent events",
        {200: str},
        parameters=[
            _parameter("subscription", {"type": "array", "items": _ID["schema"], "minItems": 1, "maxItems": 100})
            | {"required": True},
            *_STREAM,
        ],
        errors=(404, 429),
        media="text/event-stream",
    ),
    _Operation(
        "/v1/changes",
        "post",
        "Changes of tables: a line each",
        {200: answers.Applied, 202: answers.StoredChanges},
        _LINES,
        [_parameter("producer", {"type": "string", "pattern": PRODUCER_PATTERN})],
    ),
    _Operation(
        "/v1/quarantine",
        "get",
        "Records that were refused",
        {200: answers.QuarantinePage},
        parameters=[_AFTER_NUMBER, _LIMIT],
    ),
    _Operation(
        "/v1/targets",
        "post",
        "Create a webhook",
        {200: answers.ShownTarget, 201: answers.NewTarget},
        bodies.TargetBody,
        errors=(409, 422),
    ),
    _Operation("/v1/targets", "get", "List webhooks", {200: answers.TargetPage}),
    _Operation(_TARGET, "get", "One webhook", {200: answers.ShownTarget}, parameters=[_ID]),
    _Operation(_TARGET, "put", "Change a webhook", {200: answers.ShownTarget}, bodies.TargetBody, [_ID], errors=(422,)),
    _Operation(_TARGET, "delete", "Drop a webhook", {200: answers.Dropped}, parameters=[_ID]),
    _Operation(
        f"{_TARGET}/rotate",
        "post",
        "A new secret; the old one signs for another day",
        {200: answers.NewSecret},
        parameters=[_ID],
    ),
    _Operation(f"{_TARGET}/test", "post", "Send a test message", {200: answers.ShownAttempt}, parameters=[_ID]),
    _Operation(f"{_TARGET}/resume", "post", "Deliver again", {200: answers.ShownTarget}, parameters=[_ID]),
    _Operation(f"{_TARGET}/attempts", "get", "The last attempts", {200: answers.AttemptPage}, parameters=[_ID]),
    _Operation(
        f"{_TARGET}/dead-letters",
        "get",
        "What could not be delivered",
        {200: answers.LetterPage},
        parameters=[_ID, _LIMIT, _AFTER_NUMBER],
    ),
    _Operation(
        f"{_TARGET}/dead-letters/replay", "post", "Send dead letters again", {200: answers.Replayed}, parameters=[_ID]
    ),
    _Operation(
        "/v1/tenants",
        "post",
        "Create a tenant",
        dict.fromkeys((200, 201), answers.ShownTenant),
        bodies.NewTenantBody,
        errors=(409,),
    ),
    _Operation("/v1/tenants", "get", "List tenants", {200: answers.TenantPage}),
    _Operation(_TENANT, "get", "One tenant", {200: answers.ShownTenant}, parameters=[_T]),
    _Operation(_TENANT, "put", "Change a tenant", {200: answers.ShownTenant}, bodies.TenantBody, [_T]),
    _Operation(_TENANT, "delete", "Drop a tenant with all it has", {200: answers.Dropped}, parameters=[_T]),
    _Operation(
        f"{_TENANT}/keys", "post", "Create an API key; it is shown once", {201: answers.NewKey}, bodies.KeyBody, [_T]
    ),
    _Operation(f"{_TENANT}/keys/{{id}}", "delete", "Revoke an API key", {200: answers.Dropped}, parameters=[_T, _ID]),
]
_WHAT = {status: " or ".join(sorted(name for name in STATUS if STATUS[name] == status)) for status in STATUS.values()}


@cache
def openapi() -> dict[str, Any]:
    """The description, OpenAPI 3.1."""
    types = list(dict.fromkeys([*_BODIES, *(kind for each in _OPERATIONS for kind in each.answer.values())]))
    found, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    schemas = dict(zip(types, found, strict=True))
    paths: dict[str, Any] = {}
    for each in _OPERATIONS:
        paths.setdefault(each.path, {})[each.method] = _described(each, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Tidings", "version": __version__, "license": {"name": "Apache-2.0"}},
        "paths": paths,
        "components": {
            "schemas": {**components, "Error": _ERROR},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _described(each: _Operation, schemas: dict[Any, Any]) -> dict[str, Any]:
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    found: dict[str, Any] = {
        "summary": each.summary,
        "operationId": f"{each.method}_{each.path.strip('/').replace('/', '_').replace('{', '').replace('}', '')}",
        "parameters": each.parameters,
        "security": [] if each.is_open else [{"key": []}],
        "responses": {
            **{str(status): {"description": _WHAT[status], "content": error} for status in _errors(each)},
            **{
                str(status): {"description": "done", "content": {each.media: {"schema": schemas[kind]}}}
                for status, kind in each.answer.items()
            },
        },
    }
    if isinstance(each.body, str):
        # A line may be sent as JSON, too: any value is taken, and answered on its own.
        content: dict[str, Any] = {each.body: {"schema": {"type": "string"}}, "application/json": {"schema": {}}}
        found["requestBody"] = {"required": True, "content": content}
    elif each.body is not None:
        schema = schemas[each.body]
        if each.method == "put":
            schema = {"allOf": [schema], "properties": {"id": {"const": None, "description": "Or that of the path."}}}
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return found


def _errors(each: _Operation) -> list[int]:
    """Statuses of an operation's errors. Headers may be too slow or too large anywhere, and names of hosts wrong."""
    found = {400, 403, 408, 413, *each.errors}
    if not each.is_open:
        found |= {401, 503}
    if "{" in each.path:
        found.add(404)
    if each.body is not None:
        found.add(415)
    return sorted(found)
