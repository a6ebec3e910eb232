"""The Spark engine for `tidings.testing.check_family`: the contract suite on a real Spark."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tidings.spark.replay import replay_on_spark


def run_spark(
    catalog_sql: str,
    subscription_lines: list[bytes],
    change_lines: list[bytes],
    batch_sizes: list[int],
    strategy: dict[str, str],
) -> list[str]:
    """Notification lines of a replay on Spark, where strategies are all one.

    Runs inside a `spark_session` share that session, which is much faster.
    """
    with tempfile.TemporaryDirectory(prefix="tidings-test-") as temporary:
        folder = Path(temporary)
        catalog, subscriptions, changes = (
            folder / name for name in ("catalog.sql", "subscriptions.jsonl", "changes.jsonl")
        )
        catalog.write_text(catalog_sql)
        subscriptions.write_bytes(b"".join(line + b"\n" for line in subscription_lines))
        changes.write_bytes(b"".join(line + b"\n" for line in change_lines))
        out = folder / "out.jsonl"
        replay_on_spark(catalog, subscriptions, changes, out, folder / "quarantine.jsonl", batch_sizes, "local[2]")
        return out.read_text(encoding="utf-8").split("\n")[:-1]
