"""Segment files of the notice log, as the writer makes them: preallocated, so that readers can map them once and for all."""

from __future__ import annotations

import os
from pathlib import Path

from tidings.model.errors import RunError

_PAGE = 4096


def failed(path: Path, error: OSError) -> RunError:
    return RunError(
        f"cannot write {path}: {error.strerror}. Make room, then give the same command again: it goes on where it stopped"
    )


def create(path: Path, data: bytes, size: int) -> int:
    """A new file of `size` bytes that begins with `data`, durably there; gives its handle. If it raises, there is no file."""
    partial = path.with_name(path.name + ".partial")
    handle = os.open(partial, os.O_CREAT | os.O_RDWR | os.O_TRUNC)
    try:
        os.ftruncate(handle, -(-size // _PAGE) * _PAGE)
        write_at(handle, data, 0)
        os.fsync(handle)
        partial.replace(path)
        sync_folder(path.parent)
    except BaseException:
        os.close(handle)
        partial.unlink(missing_ok=True)
        raise
    return handle


def write_at(handle: int, data: bytes, offset: int) -> None:
    at = os.pwrite(handle, data, offset)
    while at < len(data):
        at += os.pwrite(handle, memoryview(data)[at:], offset + at)


def clear_from(handle: int, offset: int) -> None:
    """Makes zeros of what was written behind an offset. The file keeps its size: a reader may have it mapped."""
    size = os.fstat(handle).st_size
    while offset < size:
        try:
            offset = os.lseek(handle, offset, os.SEEK_DATA)
        except OSError:
            # There is nothing but a hole.
            return
        stop = min(os.lseek(handle, offset, os.SEEK_HOLE), offset + 2**20)
        write_at(handle, bytes(stop - offset), offset)
        offset = stop


def sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
