"""The OpenAPI description, made from the types that the routes decode."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from tidings import __version__
from tidings.server.api import bodies
from tidings.server.api.errors import STATUS

_OBJECT: dict[str, Any] = {"type": "object"}
_BODIES = (
    bodies.SubscriptionBody,
    bodies.BulkLine,
    bodies.QueryBody,
    bodies.TargetBody,
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


_ID = _parameter("id", {"type": "string", "pattern": bodies.ID_PATTERN}, "path")
_KEY = _parameter("key", {"type": "string", "pattern": bodies.ID_PATTERN}, "path")
_POSITION = {"type": "string", "pattern": "^[A-Za-z0-9]{1,32}-[0-9]{1,18}$"}
_LIMIT = _parameter("limit", {"type": "integer", "minimum": 1, "maximum": 1000})
_AFTER_NUMBER = _parameter("after", {"type": "integer", "minimum": 0})
_STREAM = [
    _parameter("after", _POSITION),
    _parameter("every_seconds", {"type": "number", "minimum": 0, "maximum": 86400}),
    _parameter("behind", {"enum": ["coalesce", "every", "disconnect"]}),
    _parameter("token", {"type": "string"}),
]


class _Operation(msgspec.Struct):
    """path, method, what it does; body: name of a type, or a media type; statuses: of success."""

    path: str
    method: str
    summary: str
    statuses: tuple[int, ...] = (200,)
    body: type | str | None = None
    parameters: list[dict[str, Any]] = []
    media: str = "application/json"
    is_open: bool = False
    """Whether it needs no key."""


_ONE, _TARGET, _TENANT = "/v1/subscriptions/{id}", "/v1/targets/{id}", "/v1/tenants/{id}"
_OPERATIONS = [
    _Operation("/healthz", "get", "Whether the process lives", is_open=True),
    _Operation("/readyz", "get", "Whether it serves", (200, 503), is_open=True),
    _Operation("/metrics", "get", "Figures for Prometheus", media="text/plain"),
    _Operation("/openapi.json", "get", "This description", is_open=True),
    _Operation("/client.js", "get", "The JavaScript client", media="text/javascript", is_open=True),
    _Operation("/v1/about", "get", "Version, engine, limits and retention"),
    _Operation("/v1/catalog", "get", "Tables and columns"),
    _Operation("/v1/subscriptions", "post", "Create a subscription", (200, 201, 202), bodies.SubscriptionBody),
    _Operation(
        "/v1/subscriptions",
        "get",
        "List subscriptions",
        parameters=[_LIMIT, *(_parameter(name, {"type": "string"}) for name in ("after", "family", "state"))],
    ),
    _Operation(_ONE, "get", "One subscription", parameters=[_ID]),
    _Operation(
        _ONE,
        "put",
        "Replace a subscription, or create it",
        (200, 201, 202),
        bodies.SubscriptionBody,
        [_ID, _parameter("If-Match", {"type": "string", "pattern": '^"[0-9]{1,9}"$'}, "header")],
    ),
    _Operation(_ONE, "delete", "Drop a subscription", parameters=[_ID]),
    _Operation(
        "/v1/bulk",
        "post",
        "Create and drop many subscriptions",
        (200,),
        "application/x-ndjson",
        media="application/x-ndjson",
    ),
    _Operation("/v1/explain", "post", "What the service makes of a query", (200,), bodies.QueryBody),
    _Operation("/v1/tokens", "post", "A token for a browser", (201,), bodies.TokenBody),
    _Operation(f"{_ONE}/rows", "get", "The rows now", parameters=[_ID]),
    _Operation(
        f"{_ONE}/changes",
        "get",
        "Changes behind a position; waits for some",
        parameters=[
            _ID,
            _parameter("after", _POSITION),
            _parameter("limit", {"type": "integer", "minimum": 1, "maximum": 10000}),
            _parameter("wait_seconds", {"type": "number", "minimum": 0, "maximum": 60}),
        ],
    ),
    _Operation(
        f"{_ONE}/stream", "get", "Changes as server-sent events", parameters=[_ID, *_STREAM], media="text/event-stream"
    ),
    _Operation(
        "/v1/stream",
        "get",
        "Changes of several subscriptions as server-sent events",
        parameters=[
            _parameter("subscription", {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 100}),
            *_STREAM,
        ],
        media="text/event-stream",
    ),
    _Operation(
        "/v1/changes",
        "post",
        "Changes of tables, as lines",
        (200, 202),
        "application/x-ndjson",
        [_parameter("producer", {"type": "string", "minLength": 1, "maxLength": 200})],
    ),
    _Operation("/v1/quarantine", "get", "Records that were refused", parameters=[_AFTER_NUMBER, _LIMIT]),
    _Operation("/v1/targets", "post", "Create a webhook", (200, 201), bodies.TargetBody),
    _Operation("/v1/targets", "get", "List webhooks"),
    _Operation(_TARGET, "get", "One webhook", parameters=[_ID]),
    _Operation(_TARGET, "put", "Change a webhook", (200,), bodies.TargetBody, [_ID]),
    _Operation(_TARGET, "delete", "Drop a webhook", parameters=[_ID]),
    _Operation(f"{_TARGET}/rotate", "post", "A new secret; the old one signs for another day", parameters=[_ID]),
    _Operation(f"{_TARGET}/test", "post", "Send a test message", parameters=[_ID]),
    _Operation(f"{_TARGET}/resume", "post", "Deliver again", parameters=[_ID]),
    _Operation(f"{_TARGET}/attempts", "get", "The last attempts", parameters=[_ID]),
    _Operation(
        f"{_TARGET}/dead-letters", "get", "What could not be delivered", parameters=[_ID, _LIMIT, _AFTER_NUMBER]
    ),
    _Operation(f"{_TARGET}/dead-letters/replay", "post", "Send dead letters again", parameters=[_ID]),
    _Operation("/v1/tenants", "post", "Create a tenant", (200, 201), bodies.TenantBody),
    _Operation("/v1/tenants", "get", "List tenants"),
    _Operation(_TENANT, "get", "One tenant", parameters=[_ID]),
    _Operation(_TENANT, "put", "Change a tenant", (200,), bodies.TenantBody, [_ID]),
    _Operation(_TENANT, "delete", "Drop a tenant with all it has", parameters=[_ID]),
    _Operation(f"{_TENANT}/keys", "post", "Create an API key; it is shown once", (201,), bodies.KeyBody, [_ID]),
    _Operation(f"{_TENANT}/keys/{{key}}", "delete", "Revoke an API key", parameters=[_ID, _KEY]),
]


@cache
def openapi() -> dict[str, Any]:
    """The description, OpenAPI 3.1."""
    schemas, components = msgspec.json.schema_components(_BODIES, ref_template="#/components/schemas/{name}")
    paths: dict[str, Any] = {}
    for each in _OPERATIONS:
        paths.setdefault(each.path, {})[each.method] = _described(each)
    assert len(schemas) == len(_BODIES)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Tidings", "version": __version__, "license": {"name": "Apache-2.0"}},
        "paths": paths,
        "components": {
            "schemas": {**components, "Error": _ERROR},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _described(each: _Operation) -> dict[str, Any]:
    success = {each.media: {"schema": _OBJECT if each.media == "application/json" else {"type": "string"}}}
    found: dict[str, Any] = {
        "summary": each.summary,
        "operationId": f"{each.method}_{each.path.strip('/').replace('/', '_').replace('{', '').replace('}', '')}",
        "parameters": each.parameters,
        "security": [] if each.is_open else [{"key": []}],
        "responses": {
            **{str(status): {"description": "done", "content": success} for status in each.statuses},
            "default": {
                "description": "an error",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
            },
        },
    }
    if each.path == "/readyz":
        del found["responses"]["default"]
    if isinstance(each.body, str):
        found["requestBody"] = {"required": True, "content": {each.body: {"schema": {"type": "string"}}}}
    elif each.body is not None:
        reference = {"$ref": f"#/components/schemas/{each.body.__name__}"}
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": reference}}}
    return found
