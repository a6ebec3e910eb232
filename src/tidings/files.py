"""Reading and writing the files of the contract, with errors a user can act on."""

from __future__ import annotations

import fcntl
import json
import os
import resource
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

from tidings.model.catalog import Catalog
from tidings.model.errors import UsageError

_LOADED_AT_A_TIME = 50_000


@dataclass(frozen=True)
class GeneratedFiles:
    """Files of one kind, made as they are written.

    unit: what is counted, "lines of changes" or "documents"; None where nothing is.
    total: how many of them there will be, as far as it is known.
    files: lines by the file's name, which is relative to the output folder. Each iterator can be consumed once.
    """

    unit: str | None
    total: int
    files: Mapping[str, Iterator[bytes]]


def read_catalog(path: Path) -> Catalog:
    from tidings.sql import parse_catalog

    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"cannot read the catalog {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"the catalog {path} is not UTF-8 text") from None
    return parse_catalog(text)


def open_input(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None


def read_lines(source: IO[bytes]) -> Iterator[bytes]:
    """Lines without their ends."""
    for line in source:
        yield line.rstrip(b"\r\n")


def load_files(path: Path) -> list[Path]:
    """The files with rows to load: the one that is named, or those of a folder, by name. Hidden ones are passed over."""
    if not path.is_dir():
        check_files([path], [])
        return [path]
    found = sorted(file for file in path.iterdir() if file.is_file() and not file.name.startswith((".", "_")))
    if not found:
        raise UsageError(f"there is no file to load in {path}")
    return found


def loaded_lines(files: Iterable[Path]) -> Iterator[tuple[int, list[bytes]]]:
    """Lines of `load_files`, some at a time, each with the number of the first one."""
    position = 0
    for file in files:
        with open_input(file) as source:
            lines = read_lines(source)
            while taken := list(islice(lines, _LOADED_AT_A_TIME)):
                yield position, taken
                position += len(taken)


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file that appears under its name only when it is complete. Pipes and devices are written as they are."""
    target = Path(os.path.realpath(path))
    is_special = path.exists() and not path.is_file()
    partial = path if is_special else target.with_name(target.name + ".partial")
    try:
        if not is_special:
            partial.parent.mkdir(parents=True, exist_ok=True)
        sink = partial.open("wb")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None
    try:
        with sink:
            yield sink
            if not is_special:
                # Else, after a failure of the machine, there might be a file with the name and without the contents.
                sink.flush()
                os.fsync(sink.fileno())
    except BaseException:
        if not is_special:
            partial.unlink(missing_ok=True)
        raise
    if not is_special:
        partial.replace(target)


@contextmanager
def only_one(out: Path) -> Iterator[None]:
    """Holds a lock on an output; UsageError if another run has it. The lock ends with the process, also if it is killed.

    Pipes and devices are not locked: what is written to them is not replaced.
    """
    if out.exists() and not out.is_file():
        yield
        return
    target = Path(os.path.realpath(out))
    path = target.with_name(target.name + ".lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = _locked(path)
    except BlockingIOError:
        raise UsageError(f"another run is writing {out}") from None
    except OSError as error:
        raise UsageError(f"cannot write {out}: {error.strerror}") from None
    with lock:
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _locked(path: Path) -> IO[bytes]:
    """The file, created if need be and locked. BlockingIOError if another process has locked it."""
    while True:
        lock = path.open("ab")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Whoever had the lock before may have removed the file since it was opened: then others do not see this lock.
            if path.exists() and os.path.samestat(os.fstat(lock.fileno()), path.stat()):
                return lock
        except BaseException:
            lock.close()
            raise
        lock.close()


def check_files(inputs: Iterable[Path], outputs: Iterable[Path | None]) -> None:
    """Refuses, before any work is done, files that cannot be read or written or stand in each other's way."""
    taken: dict[str, Path] = {}
    for path in inputs:
        if path.is_dir():
            raise UsageError(f"cannot read {path}: it is a folder")
        if not path.exists():
            raise UsageError(f"cannot read {path}: No such file or directory")
        if not os.access(path, os.R_OK):
            raise UsageError(f"cannot read {path}: Permission denied")
        taken[os.path.realpath(path)] = path
    for output in outputs:
        if output is None or (output.exists() and not output.is_file() and not output.is_dir()):
            continue
        if output.is_dir():
            raise UsageError(f"cannot write {output}: it is a folder")
        if os.path.realpath(output) in taken:
            raise UsageError(f"cannot write {output}: it is also used as {taken[os.path.realpath(output)]}")
        taken[os.path.realpath(output)] = output


def check_kinds(subscriptions: Path, changes: Path) -> None:
    """Refuses files of which every record is of the other kind, as when the two were swapped."""
    swapped = [
        f"all records of {path} are {other}"
        for path, is_other, other in (
            (subscriptions, _is_change, "changes, not subscriptions"),
            (changes, _is_subscription, "subscriptions, not changes"),
        )
        if _are_all(path, is_other)
    ]
    if swapped:
        raise UsageError(f"{' and '.join(swapped)}: were --subscriptions and --changes swapped?")


def _are_all(path: Path, is_other: Callable[[dict[str, Any]], bool]) -> bool:
    """Whether a file has records, and all are so. Pipes are not looked at, since they can be read only once."""
    if not path.is_file():
        return False
    count = 0
    with path.open("rb") as source:
        for line in source:
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except ValueError:
                return False
            if not isinstance(record, dict) or not is_other(record):
                return False
            count += 1
    return count > 0


def _is_subscription(record: dict[str, Any]) -> bool:
    return "id" in record and ("sql" in record or "drop" in record) and not {"op", "table", "payload"} & record.keys()


def _is_change(record: dict[str, Any]) -> bool:
    return bool({"op", "payload"} & record.keys()) and not {"sql", "drop"} & record.keys()


def check_outside(folder: Path, outputs: Iterable[Path | None]) -> None:
    """Refuses outputs in a folder of inputs, where they would replace one of them, or be one the next time."""
    for output in outputs:
        if output is not None and Path(os.path.realpath(output)).is_relative_to(os.path.realpath(folder)):
            raise UsageError(f"cannot write {output}: it is in {folder}, which is read as a whole")


def write_lines(sink: IO[bytes], lines: Iterable[str]) -> None:
    sink.writelines(line.encode() + b"\n" for line in lines)


def write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value, indent=2) + "\n")


def write_text(path: Path, text: str) -> None:
    write_bytes(path, [text.encode()])


def write_bytes(path: Path, pieces: Iterable[bytes | memoryview]) -> None:
    """Writes a file that is there whole or not at all, also after a failure of the machine."""
    with replacing(path) as sink:
        sink.writelines(pieces)


def peak_rss_mb(pid: int | None = None) -> float:
    """Highest memory so far of this process, or of another one where the system tells (else 0)."""
    if pid is None:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM:")), 0.0)
