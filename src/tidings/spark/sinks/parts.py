"""The sink of a replay: one set of files per micro-batch, idempotent by batch id, put together at the end.

Files are written under temporary names and renamed; a batch counts only when its manifest is there, and the manifest is
the last to be renamed. A batch that is run again after a crash writes the same lines, and a manifest that names its own files.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import numpy as np

from tidings.files import write_bytes
from tidings.model.blob import unpack
from tidings.model.notification import NotificationBatch
from tidings.spark import envelope as kinds

_PARTS = (kinds.NOTIFICATIONS, kinds.ANSWERS, kinds.REFUSED, kinds.WARNINGS)


class PartsSink:
    """Writes micro-batches into a folder and reads them back in order."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def write(self, batch_id: int, rows: Iterable[Any]) -> dict[str, Any]:
        """Writes one micro-batch of envelopes (rows with kind and blob). Returns its metrics.

        Lines are in files that replicas have written, which envelopes name; or, from gateways, in the envelopes themselves.
        """
        notifications: list[NotificationBatch] = []
        refused: list[bytes] = []
        parts: dict[str, list[str]] = {kind: [] for kind in _PARTS}
        metrics: dict[str, Any] = {}
        for row in rows:
            blob = bytes(row["blob"])
            if row["kind"] == kinds.PART:
                parts[blob.decode().rpartition(".")[2]].append(blob.decode())
            elif row["kind"] == kinds.METRICS:
                add_metrics(metrics, unpack(blob))
            elif row["kind"] == kinds.NOTIFICATIONS:
                notifications.append(unpack(blob))
            elif row["kind"] == kinds.REFUSED:
                refused.append(blob)
        if notifications:
            name = f"out-{batch_id:08d}.{kinds.NOTIFICATIONS}"
            self._replace(name, NotificationBatch.merge(notifications).text())
            parts[kinds.NOTIFICATIONS].append(name)
        if refused:
            name = f"out-{batch_id:08d}.{kinds.REFUSED}"
            self._replace(name, refused)
            parts[kinds.REFUSED].append(name)
            metrics["quarantined"] = sum(blob.count(b"\n") for blob in refused)
        self._replace(f"manifest-{batch_id:08d}.json", [json.dumps({"metrics": metrics, **parts}).encode()])
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
            sink.write(self._merged(self.parts(batch_id, kinds.NOTIFICATIONS)))

    def copy_refused(self, sink: IO[bytes]) -> None:
        """Appends the refused records of all complete batches to a file, in order of their lines in the input."""
        for batch_id in self.batches():
            lines = [line for part in self.parts(batch_id, kinds.REFUSED) for line in part.read_bytes().splitlines()]
            sink.writelines(line + b"\n" for line in sorted(lines, key=lambda line: int(json.loads(line)["line"])))

    def parts(self, batch_id: int, kind: str) -> list[Path]:
        """Files of a complete batch. kind: NOTIFICATIONS, ANSWERS, REFUSED or WARNINGS of `tidings.spark.envelope`."""
        return [self._folder / name for name in self._manifest(batch_id)[kind]]

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
