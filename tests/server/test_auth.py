"""Who a caller is: keys, JWTs and stream tokens, against a real registry. What is not exactly right is nobody."""

from __future__ import annotations

import base64
import hashlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from tidings.model.errors import UsageError
from tidings.server.auth import Authenticator, Identity, Unauthenticated, bearer_of
from tidings.server.jwt_settings import JwtSettings
from tidings.server.registry import Registry

SECRET = "s" * 32
NOW = 1_800_000_000.0
ENVIRONMENT = {"TIDINGS_JWT_SECRET": SECRET}


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    with Registry.open(f"sqlite:///{tmp_path / 'registry.db'}") as found:
        yield found


def claims(**more: Any) -> dict[str, Any]:
    return {"exp": NOW + 60, "tenant": "acme", "scope": "write", **more}


def signed(content: dict[str, Any], key: Any = SECRET, algorithm: str = "HS256", **headers: Any) -> str:
    return jwt.encode(content, key, algorithm, headers)


def by_secret(registry: Registry, clock: Clock | None = None, audience: str | None = None) -> Authenticator:
    return Authenticator(registry, JwtSettings.of(ENVIRONMENT, None, audience), clock=clock or Clock())


def refused(authenticator: Authenticator, bearer: str | None, token: str | None = None) -> str:
    with pytest.raises(Unauthenticated) as error:
        authenticator.identify(bearer, token)
    for credential in filter(None, (bearer, token)):
        assert credential not in str(error.value), "a message must not repeat a credential"
    return str(error.value)


def test_keys_have_256_bits_and_only_their_hash_is_kept(registry: Registry, tmp_path: Path) -> None:
    registry.ensure_tenant("acme")
    key, secret = registry.create_key("acme", "read")
    assert secret.startswith("tk_")
    assert len(base64.urlsafe_b64decode(secret.removeprefix("tk_") + "=")) == 32
    assert key.sha256 == hashlib.sha256(secret.encode()).hexdigest()
    registry.close()
    with sqlite3.connect(tmp_path / "registry.db") as database:
        everything = "\n".join(database.iterdump())
    assert secret not in everything and secret.removeprefix("tk_") not in everything
    assert key.sha256 in everything


def test_a_key_is_known_until_it_expires_or_is_revoked(registry: Registry) -> None:
    clock = Clock()
    authenticator = Authenticator(registry, clock=clock)
    registry.ensure_tenant("acme")
    key, secret = registry.create_key("acme", "read", NOW + 100)
    assert authenticator.identify(secret) == Identity("acme", "read", None, NOW + 100, key.id)
    clock.now = NOW + 100
    assert "expired" in refused(authenticator, secret)
    key, secret = registry.create_key("acme", "admin")
    assert authenticator.identify(secret).may("admin")
    assert not authenticator.identify(secret).may("operator")
    registry.revoke("acme", key.id)
    authenticator.forget()
    refused(authenticator, secret)
    for nonsense in ("tk_", "tk_" + "x" * 43, secret[:-1], "x" * 20_000):
        refused(authenticator, nonsense)
    refused(authenticator, None)


@pytest.mark.parametrize("header", ["", "Basic dTpw", "Bearer", "Bearer  ", "tk_x"])
def test_other_headers_are_not_credentials(header: str) -> None:
    with pytest.raises(Unauthenticated):
        bearer_of(header)


def test_a_jwt_needs_the_claims_and_the_time(registry: Registry) -> None:
    clock = Clock()
    authenticator = by_secret(registry, clock)
    assert authenticator.identify(signed(claims())) == Identity("acme", "write", None, NOW + 60)
    for wrong in (
        {name: value for name, value in claims().items() if name != "exp"},
        claims(exp=NOW),
        claims(exp=True),
        claims(exp="9999999999"),
        claims(exp=1e300),
        claims(nbf=NOW + 1),
        claims(scope="root"),
        claims(scope=["write"]),
        claims(scope=None),
        claims(tenant=None),
        claims(tenant="a/b"),
        claims(tenant="a\n"),
        claims(tenant=""),
        claims(aud="other"),
    ):
        token = jwt.api_jws.encode(json.dumps(wrong).encode(), SECRET, "HS256")
        refused(authenticator, token)
    clock.now += 60
    refused(authenticator, signed(claims()))


def test_an_audience_that_is_configured_must_be_named(registry: Registry) -> None:
    authenticator = by_secret(registry, audience="tidings")
    assert authenticator.identify(signed(claims(aud="tidings"))).tenant == "acme"
    refused(authenticator, signed(claims()))
    refused(authenticator, signed(claims(aud="other")))


def test_the_algorithm_follows_from_the_key_and_never_from_the_token(registry: Registry, tmp_path: Path) -> None:
    authenticator = by_secret(registry)
    refused(authenticator, jwt.encode(claims(), None, "none"))  # type: ignore[arg-type]
    refused(authenticator, signed(claims(), SECRET * 2, "HS512"))
    refused(authenticator, signed(claims(), "x" * 32))
    body = base64.urlsafe_b64encode(json.dumps(claims()).encode()).rstrip(b"=").decode()
    refused(authenticator, f"{base64.urlsafe_b64encode(b'{}').decode()}.{body}.")
    private: dict[str, Any] = {
        "RS256": rsa.generate_private_key(65537, 2048),
        "ES256": ec.generate_private_key(ec.SECP256R1()),
        "EdDSA": ed25519.Ed25519PrivateKey.generate(),
    }
    for algorithm, key in private.items():
        path = tmp_path / f"{algorithm}.pem"
        public = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        path.write_bytes(public)
        known = Authenticator(registry, JwtSettings.of({}, path, None), clock=Clock())
        assert known.identify(signed(claims(), key, algorithm)).role == "write"
        for other, stranger in private.items():
            if other != algorithm:
                refused(known, signed(claims(), stranger, other))
        # The public key as if it were a shared secret: known to everybody.
        head = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').rstrip(b"=").decode()
        mac = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256).sign(f"{head}.{body}".encode(), public)
        refused(known, f"{head}.{body}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}")


def test_settings_of_jwts_that_are_too_weak_or_contradict(tmp_path: Path) -> None:
    weak = tmp_path / "weak.pem"
    weak.write_bytes(
        rsa.generate_private_key(65537, 1024)
        .public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    for environment, key, audience in (
        ({"TIDINGS_JWT_SECRET": "short"}, None, None),
        (ENVIRONMENT, weak, None),
        ({}, weak, None),
        ({}, tmp_path / "nothing.pem", None),
        ({}, None, "tidings"),
    ):
        with pytest.raises(UsageError):
            JwtSettings.of(environment, key, audience)
    assert SECRET not in repr(JwtSettings.of(ENVIRONMENT, None, None))


def test_stream_tokens_are_short_read_only_and_for_named_subscriptions(registry: Registry) -> None:
    clock = Clock()
    authenticator = by_secret(registry, clock)
    writer = Identity("acme", "write")
    token, expires = authenticator.issue(writer, ["a", "b"], 300)
    assert expires == NOW + 300
    found = authenticator.identify(None, token)
    assert (found.tenant, found.subscriptions) == ("acme", {"a", "b"})
    assert found.may("stream", "a") and not found.may("stream", "c") and not found.may("stream")
    for action in ("read", "write", "admin", "operator"):
        assert not found.may(action, "a")  # type: ignore[arg-type]
    for seconds in (0, -1, 300.1):
        with pytest.raises(UsageError):
            authenticator.issue(writer, ["a"], seconds)
    for names in ([], [f"s{number}" for number in range(101)]):
        with pytest.raises(UsageError):
            authenticator.issue(writer, names)
    with pytest.raises(UsageError):
        authenticator.issue(found, ["a"])
    # Not later than whoever made it.
    assert authenticator.issue(Identity("acme", "read", None, NOW + 5), ["a"])[1] == NOW + 5
    # One kind is not taken for the other, in either direction.
    refused(authenticator, token)
    refused(authenticator, None, signed(claims()))
    refused(authenticator, None, signed(claims(aud="tidings:stream", subscriptions=["a"]), typ="tidings-stream+jwt"))
    clock.now = expires
    refused(authenticator, None, token)


def test_another_registry_knows_no_tokens_of_this_one(registry: Registry, tmp_path: Path) -> None:
    token, _ = by_secret(registry).issue(Identity("acme", "read"), ["a"])
    with Registry.open(f"sqlite:///{tmp_path / 'other.db'}") as other:
        refused(by_secret(other), None, token)
