"""A family spread by value runs on Spark in a stage of its own; naming it in the environment is all it takes."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from mirror_family import CATALOG, QUERIES

pytestmark = [pytest.mark.spark, pytest.mark.extended]


def test_a_family_from_outside_runs_on_both_engines(tmp_path: Path) -> None:
    rng = random.Random(11)
    _write(tmp_path, rng)
    environment = {
        **os.environ,
        "TIDINGS_FAMILIES": "mirror_family:MirrorFamily",
        "PYTHONPATH": str(Path(__file__).parent.parent / "pipeline"),
    }
    outputs = {}
    for engine, batch in (("inline", "7"), ("spark", "40")):
        out = tmp_path / f"{engine}.jsonl"
        options = [
            word for name in ("catalog", "subscriptions", "changes") for word in (f"--{name}", str(tmp_path / name))
        ]
        command = [sys.executable, "-m", "tidings.cli.main", "replay", *options, "--out", str(out), "--engine", engine]
        done = subprocess.run(
            [*command, "--batch", batch], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        outputs[engine] = out.read_text()
    assert outputs["inline"] == outputs["spark"]
    told = [json.loads(line) for line in outputs["inline"].splitlines()]
    assert any(record["subscription"].startswith("mirrored") and not record["snapshot"] for record in told)
    assert any(
        record["subscription"].startswith("mirrored") and record["seq"] and record["snapshot"] for record in told
    )


def _write(folder: Path, rng: random.Random) -> None:
    """Rows that move between the values of `kind`, and subscriptions of both families, some in mid-stream."""
    subscriptions = []
    for number, query in enumerate(QUERIES * 4):
        sql = query.format(f"'{rng.choice('abcd')}'")
        id = f"{'mirrored' if 'mirrored' in sql else 'items'}-{number}"
        subscriptions.append({"id": id, "sql": sql, "after": rng.choice([0, 50, 100])})
    changes = []
    for seq in range(1, 121):
        row = {"id": rng.randrange(12), "kind": rng.choice([*"abcd", None]), "n": rng.randrange(5)}
        changes.append({"seq": seq, "table": rng.choice(["mirrored", "items"]), "op": "upsert", "row": row})
    (folder / "catalog").write_text(CATALOG)
    for name, records in (("subscriptions", subscriptions), ("changes", changes)):
        (folder / name).write_text("".join(json.dumps(record) + "\n" for record in records))
