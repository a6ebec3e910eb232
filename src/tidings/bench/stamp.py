"""Where and from what a result comes: commit, seed, versions, machine, and how busy the machine was."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_PACKAGES = ("tidings", "numpy", "numba", "pyarrow", "pyspark", "duckdb")


def stamp(seed: int) -> dict[str, Any]:
    return {
        "commit": _commit(),
        "seed": seed,
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "machine": platform.machine(),
        "system": platform.system(),
        "cpus": os.cpu_count(),
        "load_average": load_average(),
    }


def load_average() -> list[float]:
    return [round(load, 2) for load in os.getloadavg()]


def describe(stamped: dict[str, Any]) -> str:
    load = stamped["load_average"][0]
    busy = " (busy with other work: figures are low)" if load > (stamped["cpus"] or 1) / 2 else ""
    packages = ", ".join(f"{name} {number}" for name, number in stamped["packages"].items() if number)
    where = f"{stamped['cpus']} cpus, load {load} at the start{busy}"
    return f"commit {stamped['commit'] or 'unknown'}, seed {stamped['seed']}, {where}, python {stamped['python']}, {packages}"


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _commit() -> str | None:
    """The commit of the source tree this file is in, with a + where it has been edited since."""
    here = Path(__file__).parent
    try:
        commit = _git(here, "rev-parse", "--short=12", "HEAD")
        return commit + ("+" if _git(here, "status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _git(where: Path, *arguments: str) -> str:
    run = subprocess.run(["git", *arguments], cwd=where, capture_output=True, text=True, check=True, timeout=10)
    return run.stdout.strip()
