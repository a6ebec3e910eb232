"""Files that appear in a folder, micro-batch by micro-batch.

A file is known by its name, for as long as it is in the folder: times and sizes say nothing. Files that are found by one look
at the folder are taken in the order of their names. Which files a micro-batch has is written to a log before anybody reads
them, so that a micro-batch that is run again has the same ones.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
import uuid
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import pyarrow as pa

from tidings.endpoint import Endpoint
from tidings.files import write_bytes
from tidings.model.errors import UsageError
from tidings.pipeline.stream_lines import TEXT
from tidings.sources import Offset, Record
from tidings.terminal import say

_OPTIONS = ("path", "maxFilesPerTrigger", "maxBytesPerTrigger", "pathGlobFilter", "cleanSource", "spool", "partitions")
_BATCH_BYTES = 64 * 2**20
_PASSED_OVER = re.compile(r"[._].*|.*(\.tmp|\.partial|\._COPYING_)", re.DOTALL)
"""Names of files that are being written, or are not meant to be read."""
PASSED_OVER = "names that begin with '.' or '_' or end with .tmp, .partial or ._COPYING_"
_LOG = ".tidings"
"""Where the log is if no folder is named for it: in the folder of the files, where it is passed over."""
_REST = 5
"""After a look at the folder that found nothing, so many times its seconds pass until the next one."""
_COMPACT_MIN = 1000
_CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}


def check(source: Endpoint, start: str = "") -> None:
    """UsageError if the source cannot be read. Says which names of the folder are passed over."""
    if start not in ("", "earliest"):
        raise UsageError(f"a folder of files is read from its first file on: --from {start} is not possible")
    Settings.of(_options(source)).say_passed_over()


def open_source(source: Endpoint, start: str = "") -> FolderStream:
    return FolderStream(Settings.of(_options(source)))


def _options(source: Endpoint) -> dict[str, str]:
    return {**source.options, "path": source.required_path("folder")}


@dataclass(frozen=True)
class Settings:
    """files_max, bytes_max: of a micro-batch, which has one file at least. pattern: of names; empty: all.

    is_deleted: whether files are deleted when their micro-batch is done. spool: a folder for the log, to be kept with the
    checkpoint. has_partitions: whether names of files end with a tilde and the partition of their records.
    """

    folder: Path
    pattern: str
    files_max: int
    bytes_max: int
    is_deleted: bool
    spool: Path
    has_partitions: bool

    @staticmethod
    def of(options: Mapping[str, str]) -> Settings:
        """From the options of the source. UsageError if one is unknown or wrong, or there is no such folder."""
        names = {name.lower(): name for name in _OPTIONS}
        unknown = next((name for name in options if name.lower() not in names), None)
        if unknown is not None:
            raise UsageError(f"the source files has no option {unknown!r}; it has {', '.join(_OPTIONS[1:])}")
        given = {name.lower(): value for name, value in options.items()}
        clean = given.get("cleansource", "off").lower()
        if clean not in ("off", "delete"):
            raise UsageError(f"the option cleanSource is off or delete, not {clean!r}")
        partitions = given.get("partitions", "off").lower()
        if partitions not in ("off", "name"):
            raise UsageError(f"the option partitions is off or name, not {partitions!r}")
        if "://" in given["path"].removeprefix("file://"):
            raise UsageError(
                f"the source files reads folders that this machine and all executors see, not {given['path']}: mount it"
            )
        folder, pattern = Path(given["path"].removeprefix("file://")).absolute(), given.get("pathglobfilter", "")
        if folder.is_file() or ("*" in folder.name and not folder.exists()):
            folder, pattern = folder.parent, folder.name
        if not folder.is_dir():
            raise UsageError(f"there is no folder {folder} with files to read: create it, or name another one")
        has_limit = "maxfilespertrigger" in given
        return Settings(
            folder,
            pattern,
            _number(given, "maxFilesPerTrigger", sys.maxsize),
            _number(given, "maxBytesPerTrigger", sys.maxsize if has_limit else _BATCH_BYTES),
            clean == "delete",
            Path(given["spool"]).absolute() if given.get("spool") else folder / _LOG,
            partitions == "name",
        )

    def entries(self) -> list[os.DirEntry[str]]:
        """All that is in the folder."""
        try:
            with os.scandir(self.folder) as entries:
                return list(entries)
        except OSError as error:
            raise UsageError(f"cannot look into {self.folder}: {error.strerror}") from None

    def has(self, name: str) -> bool:
        """Whether a file of this name is to be read."""
        return (not self.pattern or fnmatchcase(name, self.pattern)) and not _PASSED_OVER.fullmatch(name)

    def say_passed_over(self) -> bool:
        """Says on stderr which names are passed over, if there are such files. Returns whether there are."""
        names = [each.name for each in self.entries() if _PASSED_OVER.fullmatch(each.name) and each.is_file()]
        if names:
            say(
                f"{self.folder}: {min(names)!r} is passed over, as are all {PASSED_OVER}; rename files when they are complete"
            )
        return bool(names)


class ReadLog:
    """Which files each micro-batch has, in a file to which a line is added for each. Names are kept with their inodes.

    What is done with is put together in the first line from time to time, without names that have left the folder: the log
    has at most about twice as many names as there are files in the folder.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.seen: dict[str, int] = {}
        """All files of all micro-batches."""
        self._batches: dict[int, dict[str, int]] = {}
        self.base = 0
        """Micro-batches up to this one are no longer known one by one."""
        if path.exists():
            self._load()

    def _load(self) -> None:
        text = self._path.read_bytes()
        # A line that is not whole was being written when the job was killed, and nobody has read it.
        whole = text.rfind(b"\n") + 1
        for line in text[:whole].splitlines():
            entry = json.loads(line)
            self.seen |= entry["files"]
            if entry.get("is_base"):
                self.base = entry["batch"]
            else:
                self._batches[entry["batch"]] = entry["files"]
        if whole < len(text):
            os.truncate(self._path, whole)

    @property
    def last(self) -> int:
        """Number of the last micro-batch, from 1 on; 0: there is none."""
        return max(self._batches, default=self.base)

    def add(self, files: dict[str, int]) -> None:
        """Adds a micro-batch. It is there for good when this returns."""
        number = self.last + 1
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as sink:
            sink.write(_line(number, files))
            sink.flush()
            os.fsync(sink.fileno())
        self._batches[number] = files
        self.seen |= files

    def files(self, after: int, up_to: int) -> list[str]:
        """Names of the files of some micro-batches."""
        if after < self.base or up_to > self.last:
            raise UsageError(
                f"{self._path} does not have micro-batch {up_to} of the checkpoint: both belong together. Begin with a new"
                " checkpoint"
            )
        return [name for number in range(after + 1, up_to + 1) for name in self._batches[number]]

    def is_long(self) -> bool:
        """Whether it is time for `compact`: it costs as much as all that was added since the last time."""
        added = sum(map(len, self._batches.values()))
        return added + len(self._batches) > _COMPACT_MIN + len(self.seen) - added

    def compact(self, done: int, present: Collection[str]) -> None:
        """Forgets names of micro-batches up to `done` that are not `present` in the folder."""
        open = {number: files for number, files in self._batches.items() if number > done}
        waiting = {name for files in open.values() for name in files}
        self.seen = {name: inode for name, inode in self.seen.items() if name in present or name in waiting}
        base = {name: inode for name, inode in self.seen.items() if name not in waiting}
        lines = [_line(done, base, is_base=True), *(_line(number, files) for number, files in open.items())]
        write_bytes(self._path, lines)
        self._batches, self.base = open, done


def _line(batch: int, files: dict[str, int], **more: bool) -> bytes:
    return json.dumps({"batch": batch, **more, "files": files}).encode() + b"\n"


class FolderStream:
    """The stream of a folder's files. An offset is the id of a log, and the number of a micro-batch in it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._logs: dict[str, ReadLog] = {}
        self._found: list[str] = []
        """Files that were found and are not yet taken, in order."""
        self._is_last = False
        self._rest_until = 0.0
        self._has_said = False
        self._deleted = 0
        """Files of micro-batches up to this one are deleted, if they are to be."""

    def first(self) -> Offset:
        return {"log": uuid.uuid4().hex[:12], "batch": 0}

    def stop_at_present(self) -> None:
        """Lets the stream end with the files that are there now: the next look at the folder is the last one."""
        self._is_last = True
        self._found, self._rest_until = [], 0.0

    def latest(self, start: Offset) -> Offset:
        """The offset behind the next micro-batch; `start` if there is no file for one."""
        log = self._log(start)
        if log.last > start["batch"]:
            # Written before a crash.
            return {**start, "batch": log.last}
        began = time.monotonic()
        if not self._found and began >= self._rest_until:
            self._found = self._look(log)
            ended = time.monotonic()
            rest = 0.0 if self._found else _REST * (ended - began)
            self._rest_until = float("inf") if self._is_last else ended + rest
        taken = self._take()
        if not taken:
            return start
        log.add(taken)
        return {**start, "batch": log.last}

    def paths(self, start: Offset, end: Offset) -> list[Path]:
        """The files between two offsets, in order."""
        # At the very beginning `start` may be of another call of `first`.
        names = self._log(end).files(start["batch"], end["batch"])
        return [self._settings.folder / name for name in names]

    def records(self, start: Offset, end: Offset) -> Iterator[Record]:
        """A record a file."""
        return (read_file(path, self._settings.has_partitions) for path in self.paths(start, end))

    def close(self) -> None:
        """There is nothing to be closed: files are read whole."""

    def commit(self, end: Offset) -> None:
        """Gives up what is before `end`: it will not be asked for again."""
        log = self._log(end)
        if self._settings.is_deleted:
            for path in self.paths({**end, "batch": max(self._deleted, log.base)}, end):
                path.unlink(missing_ok=True)
            self._deleted = end["batch"]
        if log.is_long():
            log.compact(end["batch"], {entry.name for entry in self._settings.entries()})

    def _log(self, offset: Offset) -> ReadLog:
        if "log" not in offset:
            raise UsageError(
                "the checkpoint is of another version of the source files: go on with the version of Tidings that wrote it, or"
                " begin with a new checkpoint"
            )
        id = offset["log"]
        if id not in self._logs:
            self._logs[id] = ReadLog(self._settings.spool / f"files-{id}.jsonl")
        return self._logs[id]

    def _look(self, log: ReadLog) -> list[str]:
        """Names of the files that are new, in order."""
        found = []
        for entry in self._settings.entries():
            name, inode = entry.name, log.seen.get(entry.name)
            if inode is None and self._settings.has(name) and entry.is_file():
                found.append(name)
            elif inode is not None and inode != entry.inode():
                say(f"{entry.path} was replaced after it was read: it is not read again. Give new files new names")
                log.seen[name] = entry.inode()
        if not self._has_said:
            self._has_said = self._settings.say_passed_over()
        return sorted(found, key=text_of)

    def _take(self) -> dict[str, int]:
        """Files for a micro-batch, which are no longer found. Those that have left the folder meanwhile are left out."""
        settings, taken = self._settings, dict[str, int]()
        size = at = 0
        for at, name in enumerate(self._found, 1):
            path = settings.folder / name
            try:
                more, inode = path.stat().st_size, path.lstat().st_ino
            except FileNotFoundError:
                continue
            size += more
            if taken and (len(taken) == settings.files_max or size > settings.bytes_max):
                at -= 1
                break
            taken[name] = inode
        del self._found[:at]
        return taken


def read_file(path: Path, has_partition: bool = False) -> Record:
    """The contents of a file, with its name as the place. has_partition: as in `Settings`."""
    try:
        data, micros = path.read_bytes(), path.stat().st_mtime_ns // 1000
    except OSError as error:
        raise UsageError(
            f"cannot read {path}, which belongs to a micro-batch that has begun: {error.strerror}. Put it back, and start again"
        ) from None
    name = text_of(path.name)
    partition = name.partition("~")[2] if has_partition else ""
    return Record(partition, TEXT + name.encode(), micros, _unpacked(data, path.suffix))


def _unpacked(data: bytes, suffix: str) -> bytes:
    """The contents of a file that may be compressed. What cannot be unpacked is left as it is, to be refused as a record."""
    if suffix in _CODECS:
        with suppress(OSError), pa.CompressedInputStream(pa.BufferReader(data), _CODECS[suffix]) as source:
            return bytes(source.read())
    return data


def text_of(name: str) -> str:
    """A name of a file as text, also where it is none."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _number(options: Mapping[str, str], name: str, default: int) -> int:
    text = options.get(name.lower(), str(default))
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise UsageError(f"the option {name} is a number above 0, not {text!r}")
    return int(text)
