"""Tenants, their API keys, and secrets that the service makes for itself."""

from __future__ import annotations

import hashlib
import secrets

from msgspec.structs import asdict
from sqlalchemy import Connection, delete, select, update

from tidings.model.errors import UsageError
from tidings.server.registry import schema
from tidings.server.registry.database import RegistryDatabase
from tidings.server.registry.rows import ROLES, Key, Role, Tenant

KEY_PREFIX = "tk_"

_TENANT = [schema.tenants.c[name] for name in Tenant.__struct_fields__]
_KEY = [schema.keys.c[name] for name in Key.__struct_fields__]


def hash_of(secret: str) -> str:
    """What is kept of a key. Keys have 256 random bits, so a fast hash without salt cannot be searched."""
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()


class TenantsAndKeys(RegistryDatabase):
    """The part of the registry that says who may call."""

    def put_tenant(self, tenant: Tenant) -> None:
        """Adds a tenant, or replaces it."""
        self.write(lambda connection: connection.execute(self._upsert(schema.tenants), asdict(tenant)))

    def ensure_tenant(self, tenant: str) -> Tenant:
        """The tenant, which is added if it is not there."""
        new = Tenant(tenant, created_at=self._clock())
        query = select(*_TENANT).where(schema.tenants.c.id == tenant)

        def work(connection: Connection) -> Tenant:
            connection.execute(self._insert_missing(schema.tenants), asdict(new))
            return Tenant(*connection.execute(query).one())

        return self.write(work)

    def get_tenant(self, tenant: str) -> Tenant | None:
        query = select(*_TENANT).where(schema.tenants.c.id == tenant)
        row = self.read(lambda connection: connection.execute(query).one_or_none())
        return None if row is None else Tenant(*row)

    def list_tenants(self) -> list[Tenant]:
        query = select(*_TENANT).order_by(schema.tenants.c.id)
        return [Tenant(*row) for row in self.read(lambda connection: connection.execute(query).all())]

    def delete_tenant(self, tenant: str) -> bool:
        """Deletes a tenant with its keys and targets; False if there is none.

        Its subscriptions become `dropping`: they are removed when the engine has dropped them.
        """

        def work(connection: Connection) -> bool:
            found = connection.execute(delete(schema.tenants).where(schema.tenants.c.id == tenant)).rowcount > 0
            if found:
                for table in (schema.keys, schema.targets, schema.attempts, schema.dead_letters):
                    connection.execute(delete(table).where(table.c.tenant == tenant))
                linked = schema.subscription_targets
                connection.execute(delete(linked).where(linked.c.tenant == tenant))
                own = schema.subscriptions.c
                dropping = update(schema.subscriptions).values(state="dropping", targets=[])
                connection.execute(dropping.where(own.tenant == tenant, own.state != "dropped"))
            return found

        return self.write(work)

    def create_key(self, tenant: str, role: Role, expires_at: float | None = None) -> tuple[Key, str]:
        """A new key, and its secret, which is nowhere else: only a hash of it is kept."""
        if role not in ROLES:
            raise UsageError(f"there is no role {role!r}: use {', '.join(ROLES)}")
        secret = KEY_PREFIX + secrets.token_urlsafe(32)
        key = Key(secrets.token_hex(8), tenant, role, hash_of(secret), self._clock(), expires_at)
        self.write(lambda connection: connection.execute(schema.keys.insert(), asdict(key)))
        return key, secret

    def find_key(self, secret: str) -> Key | None:
        """The key with this secret, unless it has expired or was revoked."""
        query = select(*_KEY).where(schema.keys.c.sha256 == hash_of(secret))
        row = self.read(lambda connection: connection.execute(query).one_or_none())
        key = None if row is None else Key(*row)
        return key if key is not None and key.is_valid(self._clock()) else None

    def revoke(self, tenant: str | None, key: str) -> bool:
        """Revokes a key by its id, of this tenant or, with None, of any. False if there is none that is not revoked yet."""
        own = schema.keys.c
        change = update(schema.keys).values(revoked_at=self._clock()).where(own.id == key, own.revoked_at.is_(None))
        if tenant is not None:
            change = change.where(own.tenant == tenant)
        return self.write(lambda connection: connection.execute(change).rowcount > 0)

    def list_keys(self, tenant: str | None = None) -> list[Key]:
        """All keys of a tenant, or of all, the oldest first; revoked ones too."""
        query = select(*_KEY).order_by(schema.keys.c.tenant, schema.keys.c.created_at, schema.keys.c.id)
        if tenant is not None:
            query = query.where(schema.keys.c.tenant == tenant)
        return [Key(*row) for row in self.read(lambda connection: connection.execute(query).all())]

    def secret(self, name: str) -> bytes:
        """256 random bits under a name, made when they are first asked for."""
        query = select(schema.settings.c.value).where(schema.settings.c.name == name)
        new = {"name": name, "value": secrets.token_hex(32)}

        def work(connection: Connection) -> str:
            connection.execute(self._insert_missing(schema.settings), new)
            return str(connection.execute(query).scalar_one())

        return bytes.fromhex(self.write(work))

    def get_setting(self, name: str) -> str | None:
        query = select(schema.settings.c.value).where(schema.settings.c.name == name)
        return self.read(lambda connection: connection.execute(query).scalar_one_or_none())

    def put_setting(self, name: str, value: str) -> None:
        row = {"name": name, "value": value}
        self.write(lambda connection: connection.execute(self._upsert(schema.settings), row))
