"""A folder of files: one set of files per micro-batch, idempotent by batch id, and a manifest that names the files that count.

Files are written under temporary names and renamed; a batch counts only when its manifest is there, and the manifest is
the last to be renamed. A batch that is run again after a crash writes the same lines, and a manifest that names its own files.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from tidings.files import write_bytes, write_text
from tidings.model.blob import unpack
from tidings.model.errors import UsageError
from tidings.model.notification import NotificationBatch
from tidings.pipeline.live import ANSWERS, NOTIFICATIONS, REFUSED, WARNINGS

_PARTS = (NOTIFICATIONS, ANSWERS, REFUSED, WARNINGS)
_MARK = ".run"


def check_folder(path: str, run: str) -> Path:
    """The folder of a sink. UsageError if it has output of another run, whose micro-batches have the same numbers.

    run: identity of the run, which it keeps for as long as its checkpoint lives; empty: it is new.
    """
    folder = Path(path)
    if "://" in path:
        raise UsageError(f"the sink files writes to folders that this machine has, not to {path}")
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"the sink files writes to a folder, but {folder} is a file")
    mark = folder / _MARK
    known = mark.read_text() if mark.exists() else ""
    is_own = known and known == run
    if not is_own and (known or any(folder.glob("manifest-*.json"))):
        raise UsageError(
            f"{folder} has the output of another run (one with another checkpoint): name another folder, or move it away"
        )
    return folder


def claim_folder(path: str, run: str) -> None:
    """Marks the folder of a sink as the run's."""
    folder = check_folder(path, run)
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / _MARK, run)


class PartsSink:
    """Writes micro-batches into a folder and reads them back in order."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def write(
        self,
        batch_id: int,
        texts: Mapping[str, Iterable[bytes | memoryview]],
        metrics: Mapping[str, Any],
        files: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """Writes one micro-batch. texts: lines by kind, in pieces. files: names of files with lines that are there already."""
        names = {kind: [*(files or {}).get(kind, ())] for kind in _PARTS}
        for kind, pieces in texts.items():
            names[kind].append(f"out-{batch_id:08d}.{kind}")
            self._replace(names[kind][-1], pieces)
        self._replace(f"manifest-{batch_id:08d}.json", [json.dumps({"metrics": metrics, **names}).encode()])

    def batches(self) -> list[int]:
        """Ids of the complete batches, in order."""
        return sorted(int(path.stem.partition("-")[2]) for path in self._folder.glob("manifest-*.json"))

    def metrics(self) -> dict[str, Any]:
        """Metrics of all complete batches together."""
        total: dict[str, Any] = {}
        for batch_id in self.batches():
            add_metrics(total, self.metrics_of(batch_id))
        return total

    def metrics_of(self, batch_id: int) -> dict[str, Any]:
        """Metrics of a complete batch."""
        found: dict[str, Any] = self._manifest(batch_id)["metrics"]
        return found

    def is_complete(self, batch_id: int) -> bool:
        return self._path(batch_id).exists()

    def columns(self, batch_id: int) -> NotificationBatch:
        """The notifications of a complete batch whose parts are packed columns, those of several replicas in order."""
        return NotificationBatch.merge([unpack(part.read_bytes()) for part in self.parts(batch_id, NOTIFICATIONS)])

    def remove(self, batch_id: int) -> None:
        """Deletes the files of a complete batch, which somebody else keeps. The manifest goes last, as it names the others."""
        for name in (name for kind in _PARTS for name in self._manifest(batch_id)[kind]):
            (self._folder / name).unlink(missing_ok=True)
        self._path(batch_id).unlink()

    def remove_unnamed(self) -> None:
        """Deletes files that no manifest names: those of tasks and micro-batches that were begun and given up."""
        named = {path.name for id in self.batches() for kind in _PARTS for path in self.parts(id, kind)}
        for path in self._folder.iterdir():
            if path.name not in named and path.name != _MARK and not path.name.startswith("manifest-"):
                path.unlink()

    def copy(self, sink: IO[bytes]) -> None:
        """Appends the notifications of all complete batches to a file, those of several replicas merged."""
        for batch_id in self.batches():
            sink.write(self.merged(batch_id))

    def copy_refused(self, sink: IO[bytes]) -> None:
        """Appends the refused records of all complete batches to a file, in order of their lines in the input."""
        for batch_id in self.batches():
            lines = [line for part in self.parts(batch_id, REFUSED) for line in part.read_bytes().splitlines()]
            sink.writelines(line + b"\n" for line in sorted(lines, key=lambda line: int(json.loads(line)["line"])))

    def parts(self, batch_id: int, kind: str) -> list[Path]:
        """Files of a complete batch. kind: NOTIFICATIONS, ANSWERS, REFUSED or WARNINGS of `pipeline.live`."""
        return [self._folder / name for name in self._manifest(batch_id)[kind]]

    def merged(self, batch_id: int) -> bytes | memoryview:
        """The notifications of a complete batch, those of several replicas in order."""
        parts = self.parts(batch_id, NOTIFICATIONS)
        if len(parts) < 2:
            return parts[0].read_bytes() if parts else b""
        from tidings.kernels.lines import index_lines, merge_lines

        texts = [np.frombuffer(bytearray(part.read_bytes()), np.uint8) for part in parts]
        while len(texts) > 1:
            a, b = texts.pop(0), texts.pop(0)
            texts.append(merge_lines(a, index_lines(a), b, index_lines(b)))
        return texts[0].data

    def _path(self, batch_id: int) -> Path:
        return self._folder / f"manifest-{batch_id:08d}.json"

    def _manifest(self, batch_id: int) -> dict[str, Any]:
        manifest: dict[str, Any] = json.loads(self._path(batch_id).read_text())
        return manifest

    def _replace(self, name: str, pieces: Iterable[bytes | memoryview]) -> None:
        write_bytes(self._folder / name, pieces)


def add_metrics(total: dict[str, Any], more: dict[str, Any]) -> None:
    """Adds `more` to `total`, nested counts too. Of `passed` and `is_end` the highest value is kept."""
    for name, value in more.items():
        if isinstance(value, dict):
            add_metrics(total.setdefault(name, {}), value)
        elif name in ("passed", "is_end"):
            total[name] = max(total.get(name, value), value)
        elif isinstance(value, int | float | np.integer) and not isinstance(value, bool):
            total[name] = total.get(name, 0) + value


def family_counter(metrics: dict[str, Any], name: str) -> Counter[str]:
    return Counter(metrics.get(name, {}))
