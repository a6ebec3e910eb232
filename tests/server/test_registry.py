"""The registry gives back what was put in, on both databases, after reopening too; migrations run once, and in order."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import create_engine, inspect, text

from postgres_server import Database, database, server  # noqa: F401
from tidings.model.errors import UsageError
from tidings.server.registry import (
    Attempt,
    DeadLetter,
    Registry,
    RegistryError,
    Subscription,
    Target,
    Tenant,
    registry_url,
)
from tidings.server.registry import schema as tables
from tidings.server.registry.migrations import MIGRATIONS, migrate


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'registry.db'}"
    found: Database = request.getfixturevalue("database")
    parts = conninfo_to_dict(found.dsn)
    return f"postgresql+psycopg://{parts['user']}@/{parts['dbname']}?host={parts['host']}"


@pytest.fixture
def registry(url: str) -> Iterator[Registry]:
    with Registry.open(url, clock=lambda: 1000.0) as opened:
        yield opened


def numbered(count: int, **fields: object) -> list[Subscription]:
    return [replace(Subscription("acme", f"s{n:06}", f"SELECT {n}"), **fields) for n in range(count)]


WHOLE = Subscription(
    "acme",
    "cheap",
    "SELECT 'é'",
    params={"limit": 3},
    family="topk",
    columns=["a", {"name": "b"}],
    key=["a"],
    order={"by": "per", "descending": False, "shown": True},
    state="active",
    version=7,
    seq=1 << 40,
    targets=["crm", "erp"],
    every_seconds=0.5,
    idle_seconds=60.0,
    place="east",
    metadata={"x": [1, None, "\u0000"]},
    created_at=12.25,
)


def test_a_subscription_comes_back_whole_after_reopening(url: str) -> None:
    with Registry.open(url) as opened:
        opened.put([WHOLE])
    with Registry.open(url) as opened:
        assert opened.get("acme", "cheap") == WHOLE
        assert opened.get("other", "cheap") is None
        assert opened.with_idle() == [("acme", "cheap", 60.0)]


def test_putting_again_replaces_and_links_anew(registry: Registry) -> None:
    registry.put([WHOLE, replace(WHOLE, id="b", targets=["crm", "crm"]), replace(WHOLE, tenant="zeta")])
    assert registry.by_target("acme", "crm") == ["b", "cheap"]
    edited = replace(WHOLE, version=8, targets=["erp"])
    registry.put([WHOLE, edited])
    assert registry.get("acme", "cheap") == edited
    assert registry.by_target("acme", "crm") == ["b"]
    assert registry.by_target("zeta", "crm") == ["cheap"]
    registry.remove([("acme", "cheap"), ("acme", "none")])
    assert registry.get("acme", "cheap") is None
    assert registry.by_target("acme", "erp") == []
    assert registry.get("zeta", "cheap") is not None


def test_states_and_what_is_unsettled(registry: Registry) -> None:
    registry.put(numbered(4, seq=5))
    registry.set_states(
        [
            ("acme", "s000000", "active", 9),
            ("acme", "s000001", "refused", None),
            ("acme", "s000002", "dropping", None),
            ("acme", "absent", "active", 1),
        ]
    )
    assert [(each.id, each.state) for each in registry.unsettled()] == [("s000002", "dropping"), ("s000003", "pending")]
    found = registry.get_many("acme", ["s000000", "s000001", "absent"])
    assert {name: each.seq for name, each in found.items()} == {"s000000": 9, "s000001": 5}
    assert registry.count("acme") == 2


def test_pages_have_the_order_of_bytes(registry: Registry) -> None:
    ids = ["B", "a", "a-b", "a.b", "aB", "ab", "a~", "1", "Z_"]
    registry.put([Subscription("acme", name, "q", family="select" if "b" in name else "join") for name in ids])
    found: list[str] = []
    while page := registry.page("acme", 2, found[-1] if found else None):
        found += [each.id for each in page]
    assert found == sorted(ids)
    assert [each.id for each in registry.page("acme", 9, family="select", state="pending")] == ["a-b", "a.b", "ab"]
    assert registry.page("acme", 9, state="active") == registry.page("none", 9) == []


def test_a_hundred_thousand_subscriptions_take_seconds(tmp_path: Path) -> None:
    many = numbered(100_000, targets=["crm"])
    with Registry.open(registry_url(tmp_path, None)) as opened:
        start = time.process_time()
        opened.put(many)
        assert time.process_time() - start < 10
        assert opened.count("acme") == 100_000
        assert len(opened.by_target("acme", "crm")) == 100_000


NAMES = st.sampled_from(["a", "b", "c"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), NAMES, NAMES, st.lists(st.sampled_from(["x", "y"]), max_size=3)),
        st.tuples(st.just("state"), NAMES, NAMES, st.sampled_from(["active", "dropping", "dropped"])),
        st.tuples(st.just("remove"), NAMES, NAMES, st.none()),
    ),
    max_size=20,
)


@given(STEPS)
def test_any_steps_leave_what_a_dictionary_would_have(steps: list[tuple[str, str, str, object]]) -> None:
    kept: dict[tuple[str, str], Subscription] = {}
    with TemporaryDirectory() as folder, Registry.open(registry_url(Path(folder), None)) as opened:
        for kind, tenant, name, value in steps:
            if kind == "put":
                kept[tenant, name] = Subscription(tenant, name, "q", targets=value)  # type: ignore[arg-type]
                opened.put([kept[tenant, name]])
            elif kind == "state":
                opened.set_states([(tenant, name, value, 3)])  # type: ignore[list-item]
                if (tenant, name) in kept:
                    kept[tenant, name] = replace(kept[tenant, name], state=value, seq=3)
            else:
                opened.remove([(tenant, name)])
                kept.pop((tenant, name), None)
        for tenant in "abc":
            own = [kept[key] for key in sorted(kept) if key[0] == tenant]
            assert opened.page(tenant, 9) == own
            assert opened.count(tenant) == sum(each.state in ("pending", "active") for each in own)
            for target in "xy":
                assert opened.by_target(tenant, target) == [each.id for each in own if target in each.targets]
        assert opened.unsettled() == [kept[key] for key in sorted(kept) if kept[key].state in ("pending", "dropping")]


def test_tenants(registry: Registry) -> None:
    acme = Tenant("acme", {"stocks": "sector = 'tech'"}, {"subscriptions": 5}, 3.0)
    registry.put_tenant(acme)
    assert registry.ensure_tenant("acme") == acme == registry.get_tenant("acme")
    assert registry.ensure_tenant("beta") == Tenant("beta", created_at=1000.0)
    assert [each.id for each in registry.list_tenants()] == ["acme", "beta"]
    registry.put([WHOLE])
    registry.put_target(Target("acme", "crm", "https://x.org", "s"))
    _, secret = registry.create_key("acme", "read")
    assert registry.delete_tenant("acme") and not registry.delete_tenant("acme")
    assert registry.get_tenant("acme") is None and registry.find_key(secret) is None
    assert registry.list_targets("acme") == registry.by_target("acme", "crm") == []
    assert [(each.id, each.state) for each in registry.unsettled()] == [("cheap", "dropping")]


def test_keys_are_found_until_they_expire_or_are_revoked(url: str) -> None:
    now = [1000.0]
    with Registry.open(url, clock=lambda: now[0]) as opened:
        short, short_secret = opened.create_key("acme", "write", 1010.0)
        long, long_secret = opened.create_key("acme", "read")
        assert opened.find_key(short_secret) == short and opened.find_key(long_secret) == long
        assert opened.find_key("tk_none") is None
        now[0] = 1010.0
        assert opened.find_key(short_secret) is None
        assert not opened.revoke("other", long.id) and opened.find_key(long_secret) == long
        assert opened.revoke("acme", long.id) and not opened.revoke("acme", long.id)
        assert opened.find_key(long_secret) is None
        assert {each.id for each in opened.list_keys("acme")} == {short.id, long.id}
        assert opened.list_keys("other") == []
        with pytest.raises(UsageError, match="no role 'root'"):
            opened.create_key("acme", "root")  # type: ignore[arg-type]


def test_a_key_is_kept_as_a_hash_only(tmp_path: Path) -> None:
    with Registry.open(registry_url(tmp_path, None)) as opened:
        key, secret = opened.create_key("acme", "admin")
        files = [path.read_bytes() for path in tmp_path.iterdir()]
    assert secret.startswith("tk_") and len(secret) == 46
    files += [path.read_bytes() for path in tmp_path.iterdir()]
    assert not any(secret[3:].encode() in content for content in files)
    assert any(key.sha256.encode() in content for content in files)
    assert (tmp_path / "registry.db").stat().st_mode & 0o077 == 0


def test_secrets_are_made_once(url: str) -> None:
    with Registry.open(url) as opened:
        first = opened.secret("stream-token")
        assert len(first) == 32 and first != opened.secret("another")
    with Registry.open(url) as opened:
        assert opened.secret("stream-token") == first
        opened.put_setting("epoch", "1")
        opened.put_setting("epoch", "2")
        assert opened.get_setting("epoch") == "2" and opened.get_setting("none") is None


def test_targets(registry: Registry) -> None:
    crm = Target("acme", "crm", "https://x.org/hook", "whsec_secret", batch=10, format="cloudevents")
    registry.put_target(crm)
    assert registry.get_target("acme", "crm") == crm and registry.get_target("beta", "crm") is None
    assert registry.update_target("acme", "crm", position=1 << 50, flight_from=3, flight_to=9, state="failing")
    assert not registry.update_target("beta", "crm", position=1)
    changed = registry.get_target("acme", "crm")
    assert changed == replace(crm, position=1 << 50, flight_from=3, flight_to=9, state="failing")
    assert registry.update_targets([("acme", "crm", {"flight_from": None}), ("acme", "no", {"failures": 1})]) == 1
    with pytest.raises(TypeError, match="tenant"):
        registry.update_targets([("acme", "crm", {"tenant": "beta"})])
    assert "whsec_secret" not in repr(crm)
    assert [each.id for each in registry.list_targets()] == ["crm"]
    assert registry.remove_target("acme", "crm") and not registry.remove_target("acme", "crm")


def test_the_last_hundred_attempts_of_a_target_are_kept(registry: Registry) -> None:
    registry.add_attempts([Attempt("acme", "crm", float(n), 500, "no", f"w{n}", 0.1) for n in range(130)])
    registry.add_attempts([Attempt("acme", "erp", 1.0, None, "timed out", "w", 15.0)])
    kept = registry.list_attempts("acme", "crm")
    assert [each.at for each in kept] == [float(n) for n in range(129, 29, -1)]
    assert [each.status for each in registry.list_attempts("acme", "erp")] == [None]


def test_dead_letters(registry: Registry) -> None:
    letters = [DeadLetter("acme", "crm", "cheap", f"w{n}", n, "{}", "gone", 1.0) for n in range(5)]
    registry.add_dead_letters(letters)
    registry.add_dead_letters([replace(letters[0], target="erp")])
    first = registry.page_dead_letters("acme", "crm", 3)
    rest = registry.page_dead_letters("acme", "crm", 9, first[-1].number)
    assert [replace(each, number=0) for each in first + rest] == letters
    assert registry.remove_dead_letters("acme", "erp", [first[0].number]) == 0
    assert registry.remove_dead_letters("acme", "crm", [each.number for each in first]) == 3
    assert registry.count_dead_letters("acme", "crm") == 2


def test_any_thread_may_call(registry: Registry) -> None:
    def work(tenant: str) -> None:
        for n in range(20):
            registry.put([Subscription(tenant, f"s{n}", "q")])

    threads = [Thread(target=work, args=(f"t{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [registry.count(f"t{n}") for n in range(4)] == [20] * 4


def test_migrations_make_the_tables_that_the_program_names(url: str) -> None:
    Registry.open(url).close()
    engine = create_engine(url)
    found = inspect(engine)
    made = {
        name: {column["name"]: column["nullable"] for column in found.get_columns(name)}
        for name in found.get_table_names()
        if name.startswith("tidings_")
    }
    keys = {name: found.get_pk_constraint(name)["constrained_columns"] for name in made}
    engine.dispose()
    named = tables.metadata.tables
    assert {name: set(columns) for name, columns in made.items()} == {
        name: set(table.columns.keys()) for name, table in named.items()
    }
    assert keys == {name: [column.name for column in table.primary_key] for name, table in named.items()}
    for name, table in named.items():
        for column in table.columns:
            assert column.primary_key or made[name][column.name] == column.nullable, (name, column.name)


def test_later_migrations_run_once_and_a_newer_registry_is_refused(url: str) -> None:
    Registry.open(url).close()
    later = (*MIGRATIONS, ("ALTER TABLE tidings_tenants ADD COLUMN note TEXT",))
    engine = create_engine(url)
    for _ in range(2):
        with engine.begin() as connection:
            migrate(connection, later)
    with engine.begin() as connection:
        assert connection.execute(text("SELECT version FROM tidings_schema")).scalars().all() == [len(later)]
        assert connection.execute(text("SELECT note FROM tidings_tenants")).all() == []
    engine.dispose()
    with pytest.raises(UsageError, match=f"has version {len(later)} and this program knows versions up to"):
        Registry.open(url)


def refused(url: str, kind: type[Exception] = UsageError) -> str:
    with pytest.raises(kind) as error:
        Registry.open(url)
    return str(error.value)


def test_bad_addresses_are_refused_in_one_sentence(tmp_path: Path) -> None:
    assert "needs a file" in refused("sqlite://")
    assert "no address of a database" in refused("nonsense") and "hunter2" not in refused("no://u:hunter2@x/y")
    assert "cannot be opened" in refused(f"sqlite:///{tmp_path / 'absent' / 'registry.db'}")
    (tmp_path / "text.db").write_text("this is no database, but a text that is long enough " * 20)
    assert "cannot be used" in refused(f"sqlite:///{tmp_path / 'text.db'}", RegistryError)


def test_an_empty_batch_is_no_transaction(registry: Registry) -> None:
    calls: list[Callable[[], object]] = [
        lambda: registry.put([]),
        lambda: registry.set_states([]),
        lambda: registry.remove([]),
        lambda: registry.add_attempts([]),
        lambda: registry.add_dead_letters([]),
    ]
    assert [call() for call in calls] == [None] * 5
    assert registry.update_targets([]) == registry.remove_dead_letters("acme", "crm", []) == 0
