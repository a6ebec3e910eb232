"""The work folder of a run that can be resumed: made, known again, and removed, without harm to what is not ours.

A folder is ours if it holds our mark. The mark is the first file that is written and the last that is removed, and says which
input and settings the folder is for. A killed run may leave its Java process behind, which must end before the folder is used.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tidings.files import write_json
from tidings.model.errors import UsageError

MARK = "fingerprint"
_PARTIAL = f".{MARK}.partial"
_JAVA = "java.json"
_ORPHAN_SECONDS = 20.0


def prepare(work: Path, fingerprint: str) -> None:
    """Makes an empty work folder, unless there is one with the same fingerprint, of an interrupted run."""
    if work.exists():
        _check_ours(work)
        await_orphan(work)
        mark = work / MARK
        if mark.exists() and mark.read_text() == fingerprint:
            return
        discard(work)
    work.mkdir(parents=True)
    partial = work / _PARTIAL
    partial.write_text(fingerprint)
    partial.replace(work / MARK)


def discard(work: Path) -> None:
    """Removes the folder. Renames it first: a half deleted folder must not look like an interrupted run."""
    gone = work.with_name(work.name + ".gone")
    if gone.exists():
        _check_ours(gone)
        _remove(gone)
    work.replace(gone)
    _remove(gone)


def note_java(spark: SparkSession, work: Path) -> int:
    """Writes down which Java process uses the folder. Returns its id."""
    pid = _java_of(spark)
    write_json(work / _JAVA, {"pid": pid, "identity": _identity(pid)})
    return pid


def _java_of(spark: SparkSession) -> int:
    jvm: Any = spark.sparkContext._jvm
    return int(jvm.java.lang.ProcessHandle.current().pid())


def _check_ours(folder: Path) -> None:
    """UsageError if there is anything in the folder, but not our mark."""
    if not folder.is_dir() or not (
        (folder / MARK).is_file() or {entry.name for entry in folder.iterdir()} <= {_PARTIAL}
    ):
        raise UsageError(f"{folder} is in the way: it is not the work folder of a replay. Remove or rename it")


def _remove(folder: Path) -> None:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name == MARK):
        shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
    folder.rmdir()


def _identity(pid: int) -> list[str] | None:
    """Boot of the machine and start time: tells a process from later ones with its number. None if it is over."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        # The name of a process, in brackets, may hold anything.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    state, started = fields[0], fields[19]
    return None if state == "Z" else [boot, started]


def await_orphan(work: Path, on_step: Callable[[str], object] = lambda step: None) -> None:
    """Waits for the Java process of a killed run to end, then kills it: two processes must not use one checkpoint.

    on_step: called if there is one to wait for, with words that say so.
    """
    own = SparkSession.getActiveSession()
    try:
        known = json.loads((work / _JAVA).read_text())
        pid, identity = int(known["pid"]), known["identity"]
    except (OSError, ValueError, KeyError, TypeError):
        return
    if own is not None and _java_of(own) == pid:
        return
    deadline = time.monotonic() + _ORPHAN_SECONDS
    if identity is not None and _identity(pid) == identity:
        on_step(f"waiting for Java of the run before to end (process {pid})")
    while identity is not None and _identity(pid) == identity:
        if time.monotonic() > deadline:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.1)
