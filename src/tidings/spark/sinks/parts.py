"""The sink of a replay: one set of files per micro-batch, idempotent by batch id, put together at the end.

Files are written under temporary names and renamed; a batch counts only when its manifest is there, and the manifest is
the last to be renamed. A batch that is run again after a crash writes the same lines, and a manifest that names its own files.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import numpy as np

from tidings.model.blob import unpack
from tidings.model.notification import NotificationBatch
from tidings.spark import envelope as kinds


class PartsSink:
    """Writes micro-batches into a folder and reads them back in order."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def write(self, batch_id: int, rows: Iterable[Any]) -> dict[str, Any]:
        """Writes one micro-batch of envelopes (rows with kind and blob). Returns its metrics."""
        notifications: list[NotificationBatch] = []
        parts: list[str] = []
        refused: list[tuple[int, str]] = []
        answers: list[bytes] = []
        metrics: dict[str, Any] = {}
        for row in rows:
            if row["kind"] == kinds.NOTIFICATIONS:
                notifications.append(NotificationBatch(**unpack(bytes(row["blob"]))))
            elif row["kind"] == kinds.PART:
                parts.append(bytes(row["blob"]).decode())
            elif row["kind"] == kinds.REFUSED:
                refused.extend((position, line) for position, line in unpack(bytes(row["blob"])))
            elif row["kind"] == kinds.ANSWERS:
                answers.append(bytes(row["blob"]))
            elif row["kind"] == kinds.METRICS:
                add_metrics(metrics, unpack(bytes(row["blob"])))
        metrics["quarantined"] = len(refused)
        if notifications:
            self._replace(f"out-{batch_id:08d}.lines", NotificationBatch.merge(notifications).text())
            parts.append(f"out-{batch_id:08d}.lines")
        self._replace(f"quarantine-{batch_id:08d}.jsonl", ((line + "\n").encode() for _, line in sorted(refused)))
        if answers:
            self._replace(f"answers-{batch_id:08d}.jsonl", answers)
        manifest = {"metrics": metrics, "parts": parts}
        self._replace(f"manifest-{batch_id:08d}.json", [json.dumps(manifest).encode()])
        return metrics

    def batches(self) -> list[int]:
        """Ids of the complete batches, in order."""
        return sorted(int(path.stem.partition("-")[2]) for path in self._folder.glob("manifest-*.json"))

    def metrics(self) -> dict[str, Any]:
        """Metrics of all complete batches together."""
        total: dict[str, Any] = {}
        for batch_id in self.batches():
            add_metrics(total, self._manifest(batch_id)["metrics"])
        return total

    def copy(self, sink: IO[bytes]) -> None:
        """Appends the notifications of all complete batches to a file, those of several replicas merged."""
        for batch_id in self.batches():
            sink.write(self._merged([self._folder / name for name in self._manifest(batch_id)["parts"]]))

    def copy_refused(self, sink: IO[bytes]) -> None:
        for batch_id in self.batches():
            with (self._folder / f"quarantine-{batch_id:08d}.jsonl").open("rb") as part:
                shutil.copyfileobj(part, sink, 1 << 20)

    def _merged(self, parts: list[Path]) -> bytes | memoryview:
        if len(parts) < 2:
            return parts[0].read_bytes() if parts else b""
        from tidings.kernels.lines import index_lines, merge_lines

        texts = [np.frombuffer(bytearray(part.read_bytes()), np.uint8) for part in parts]
        while len(texts) > 1:
            a, b = texts.pop(0), texts.pop(0)
            texts.append(merge_lines(a, index_lines(a), b, index_lines(b)))
        return texts[0].data

    def _manifest(self, batch_id: int) -> dict[str, Any]:
        manifest: dict[str, Any] = json.loads((self._folder / f"manifest-{batch_id:08d}.json").read_text())
        return manifest

    def _replace(self, name: str, pieces: Iterable[bytes | memoryview]) -> None:
        partial = self._folder / f".{name}.{os.getpid()}"
        with partial.open("wb") as sink:
            sink.writelines(pieces)
            sink.flush()
            os.fsync(sink.fileno())
        partial.replace(self._folder / name)


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
