"""Who is calling: API keys, JWTs of the user's own issuer, and short-lived tokens for streams.

credential      sent as                     checked by
tk_..           Authorization: Bearer       its SHA-256 in the registry
JWT             Authorization: Bearer       the configured key; the algorithm follows from that key, not from the token
stream token    ?token=, WebSocket auth     the registry's own secret; type and audience that no other JWT may have
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Collection
from typing import Any, Literal

import jwt
import msgspec

from tidings.model.errors import TidingsError, UsageError
from tidings.server.jwt_settings import JwtSettings
from tidings.server.registry import KEY_PREFIX, ROLES, Registry, Role

Action = Literal["stream", "read", "write", "admin", "operator"]
"""stream: rows, changes and streams of subscriptions. The others are what the role of that name adds."""

TOKEN_SECONDS_MAX = 300
TOKEN_SUBSCRIPTIONS_MAX = 100
DEFAULT_TENANT = "default"

_TOKEN_TYPE = "tidings-stream+jwt"
_TOKEN_AUDIENCE = "tidings:stream"
_TOKEN_SECRET = "stream-token"
_KEY_CACHE_SECONDS = 10.0
_KEY_CACHE_SIZE = 10_000
_CREDENTIAL_LENGTH_MAX = 16_384
_RANK: dict[str, int] = {role: rank for rank, role in enumerate(ROLES)}
_NEEDED: dict[str, int] = {"stream": _RANK["read"], **_RANK}
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]{0,127}", re.ASCII)
# Times are checked here, against the given clock.
_OPTIONS: Any = {"require": ["exp"], "verify_exp": False, "verify_nbf": False, "verify_iat": False}


class Unauthenticated(TidingsError):
    """The caller is nobody we know. The text never has a part of the credential."""


class Identity(msgspec.Struct, frozen=True):
    """The caller. subscriptions: the only ones it may read, and then it may do nothing else; None: no such bound."""

    tenant: str
    role: Role
    subscriptions: frozenset[str] | None = None
    expires_at: float | None = None
    key: str | None = None
    """Id of the API key, if it was one."""

    def may(self, action: Action, subscription: str | None = None) -> bool:
        """Whether the role allows it. Whoever has a stream token may only `stream`, and must say which subscription."""
        if self.subscriptions is not None:
            return action == "stream" and subscription in self.subscriptions
        return _RANK[self.role] >= _NEEDED[action]

    def is_valid(self, now: float) -> bool:
        """Whether it has not expired. Streams that stay open ask again, except those of stream tokens: a token, which is for
        minutes, opens a stream, which is for as long as somebody looks."""
        return self.expires_at is None or now < self.expires_at


def bearer_of(header: str | None) -> str | None:
    """The credential of an Authorization header; None if there is no header."""
    if header is None:
        return None
    scheme, _, credential = header.strip().partition(" ")
    if scheme.lower() != "bearer" or not credential.strip():
        raise Unauthenticated("the Authorization header must be: Bearer KEY")
    return credential.strip()


class Authenticator:
    """Tells who a caller is by what it sends.

    Found keys are remembered for ten seconds: so long a key may still be used after another process revoked it. With no_auth
    everybody is an operator of the tenant `default`.
    """

    def __init__(
        self,
        registry: Registry,
        jwt_settings: JwtSettings | None = None,
        no_auth: bool = False,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._registry = registry
        self._jwt = jwt_settings
        self._no_auth = no_auth
        self._clock = clock
        self._secret = registry.secret(_TOKEN_SECRET)
        self._known: dict[str, tuple[Identity, float]] = {}

    def identify(self, bearer: str | None, token: str | None = None) -> Identity:
        """The caller by its Authorization (see `bearer_of`) or else by its stream token. May ask the registry, and block."""
        found = self.identify_at_once(bearer, token)
        if found is None:
            assert bearer is not None
            found = self._look_up(bearer)
        return found

    def identify_at_once(self, bearer: str | None, token: str | None = None) -> Identity | None:
        """Like `identify`, without asking the registry: None if that were needed, for a key not seen lately."""
        if self._no_auth:
            return Identity(DEFAULT_TENANT, "operator")
        credential = bearer if bearer is not None else token
        if not credential:
            raise Unauthenticated("no key was given: send Authorization: Bearer KEY")
        if len(credential) > _CREDENTIAL_LENGTH_MAX:
            raise Unauthenticated("the key is too long")
        if bearer is None:
            return self._stream_token(credential)
        return self._remembered(bearer) if bearer.startswith(KEY_PREFIX) else self._api_jwt(bearer)

    def sort(self, credential: str) -> tuple[str | None, str | None]:
        """(bearer, token) for `identify`, where one field takes both: the first message of a WebSocket."""
        is_token = not credential.startswith(KEY_PREFIX) and _header(credential).get("typ") == _TOKEN_TYPE
        return (None, credential) if is_token else (credential, None)

    def forget(self) -> None:
        """Makes a revocation in this process take effect at once."""
        self._known.clear()

    def issue(
        self, identity: Identity, subscriptions: Collection[str], ttl_seconds: float = TOKEN_SECONDS_MAX
    ) -> tuple[str, float]:
        """A stream token for subscriptions of the caller's tenant, and when it expires: not later than the caller does."""
        if not 0 < ttl_seconds <= TOKEN_SECONDS_MAX:
            raise UsageError(f"ttl_seconds must be more than 0 and at most {TOKEN_SECONDS_MAX}")
        if not 0 < len(subscriptions) <= TOKEN_SUBSCRIPTIONS_MAX:
            raise UsageError(f"a token is for 1 to {TOKEN_SUBSCRIPTIONS_MAX} subscriptions")
        if not identity.may("read"):
            raise UsageError("a stream token cannot make another one")
        now = self._clock()
        expires_at = min(now + ttl_seconds, math.inf if identity.expires_at is None else identity.expires_at)
        claims = {
            "aud": _TOKEN_AUDIENCE,
            "exp": expires_at,
            "iat": now,
            "tenant": identity.tenant,
            "subscriptions": sorted(set(subscriptions)),
        }
        return jwt.encode(claims, self._secret, "HS256", headers={"typ": _TOKEN_TYPE}), expires_at

    def _remembered(self, bearer: str) -> Identity | None:
        identity, until = self._known.get(bearer, (None, 0.0))
        now = self._clock()
        return identity if identity is not None and now < until and identity.is_valid(now) else None

    def _look_up(self, bearer: str) -> Identity:
        key = self._registry.find_key(bearer)
        now = self._clock()
        if key is None or not key.is_valid(now):
            self._known.pop(bearer, None)
            raise Unauthenticated("the key is unknown, expired or revoked")
        if len(self._known) >= _KEY_CACHE_SIZE:
            self._known.clear()
        identity = Identity(key.tenant, key.role, None, key.expires_at, key.id)
        self._known[bearer] = (identity, now + _KEY_CACHE_SECONDS)
        return identity

    def _api_jwt(self, credential: str) -> Identity:
        if self._jwt is None:
            raise Unauthenticated("this is no key of this service")
        if _header(credential).get("typ") == _TOKEN_TYPE:
            raise Unauthenticated("a stream token is not accepted here")
        claims = self._claims(credential, self._jwt.key, self._jwt.algorithm, self._jwt.audience)
        role = claims.get("scope")
        if role not in ROLES:
            raise Unauthenticated(f"the JWT's scope must be one of {', '.join(ROLES)}")
        return Identity(_tenant(claims), role, None, float(claims["exp"]))

    def _stream_token(self, credential: str) -> Identity:
        if _header(credential).get("typ") != _TOKEN_TYPE:
            raise Unauthenticated("this is no stream token")
        claims = self._claims(credential, self._secret, "HS256", _TOKEN_AUDIENCE)
        return Identity(_tenant(claims), "read", frozenset(claims["subscriptions"]), float(claims["exp"]))

    def _claims(self, credential: str, key: Any, algorithm: str, audience: str | None) -> dict[str, Any]:
        """What a JWT says, if it was signed with the key, is for the audience, and not expired."""
        try:
            claims = jwt.decode(credential, key, algorithms=[algorithm], audience=audience, options=_OPTIONS)
        except jwt.MissingRequiredClaimError as error:
            raise Unauthenticated(f"the JWT lacks the claim {error.claim}") from None
        except jwt.InvalidAudienceError:
            raise Unauthenticated("the JWT is for another audience") from None
        except (jwt.PyJWTError, ValueError, TypeError):
            raise Unauthenticated("the JWT is not valid") from None
        now = self._clock()
        if _moment(claims, "exp") <= now:
            raise Unauthenticated("the JWT has expired")
        if "nbf" in claims and _moment(claims, "nbf") > now:
            raise Unauthenticated("the JWT is not valid yet")
        return claims


def _header(credential: str) -> dict[str, Any]:
    """The head of a JWT, not yet verified; empty if it is none."""
    try:
        return jwt.get_unverified_header(credential)
    except (jwt.PyJWTError, ValueError, TypeError):
        return {}


def _moment(claims: dict[str, Any], name: str) -> float:
    value = claims[name]
    if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) < 1e15:
        raise Unauthenticated(f"the JWT's claim {name} must be a number of seconds")
    return float(value)


def _tenant(claims: dict[str, Any]) -> str:
    tenant = claims.get("tenant")
    if not isinstance(tenant, str) or not _ID.fullmatch(tenant):
        raise Unauthenticated("the JWT's claim tenant must be the id of a tenant")
    return tenant
