"""How JWTs of the user's own issuer are checked: one key, and the one algorithm that belongs to it.

The algorithm is never taken from a token. A shared secret means HS256; of a public key, its type says which.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from tidings.model.errors import UsageError

SECRET_VARIABLE = "TIDINGS_JWT_SECRET"
_SECRET_BYTES_MIN = 32
_RSA_BITS_MIN = 2048


class JwtSettings(msgspec.Struct, frozen=True):
    """Key, its algorithm, and the audience that tokens must name; with None they must name none."""

    key: Any
    algorithm: str
    audience: str | None = None

    def __repr__(self) -> str:
        """Without the key: a log must never show it."""
        return f"JwtSettings(algorithm={self.algorithm!r}, audience={self.audience!r})"

    @classmethod
    def of(cls, environment: Mapping[str, str], public_key: Path | None, audience: str | None) -> JwtSettings | None:
        """By the variable TIDINGS_JWT_SECRET, or else a file with a public key; None with neither."""
        secret = environment.get(SECRET_VARIABLE, "")
        if secret and public_key is not None:
            raise UsageError(f"JWTs are checked by {SECRET_VARIABLE} or by a public key, not by both: unset one")
        if public_key is not None:
            return cls(*_public(public_key), audience)
        if not secret:
            if audience is not None:
                raise UsageError(f"an audience of JWTs needs their key too: set {SECRET_VARIABLE} or name a public key")
            return None
        if len(secret.encode()) < _SECRET_BYTES_MIN:
            raise UsageError(
                f"{SECRET_VARIABLE} must have at least {_SECRET_BYTES_MIN} bytes: shorter ones can be guessed"
            )
        return cls(secret.encode(), "HS256", audience)


def _public(path: Path) -> tuple[Any, str]:
    """The key in a PEM file, and its algorithm."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(path.read_bytes())
    except OSError as error:
        raise UsageError(f"the public key {path} cannot be read: {error.strerror}") from None
    except (ValueError, UnsupportedAlgorithm):
        raise UsageError(f"{path} has no public key: a PEM file is expected (BEGIN PUBLIC KEY)") from None
    if isinstance(key, RSAPublicKey) and key.key_size >= _RSA_BITS_MIN:
        return key, "RS256"
    if isinstance(key, EllipticCurvePublicKey) and isinstance(key.curve, SECP256R1):
        return key, "ES256"
    if isinstance(key, Ed25519PublicKey):
        return key, "EdDSA"
    raise UsageError(f"the public key {path} must be RSA of {_RSA_BITS_MIN} bits or more, P-256 or Ed25519")
