"""A folder of files, as a sink (`parts.py`)."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any

from tidings.endpoint import Endpoint
from tidings.pipeline.live import NOTIFICATIONS, Output
from tidings.sinks.parts import PartsSink, check_folder, claim_folder


def open_sink(sink: Endpoint, run: str) -> FilesSink:
    return FilesSink(sink, run)


class FilesSink:
    def __init__(self, sink: Endpoint, run: str) -> None:
        self._folder = check_folder(sink.required_path("folder"), run)

    def prepare(self, run: str, asked: threading.Event) -> None:
        claim_folder(str(self._folder), run)

    def write(self, batch: int, found: Output, metrics: Mapping[str, Any]) -> None:
        texts: dict[str, Iterable[bytes | memoryview]] = {kind: [data] for kind, data in found.reports().items()}
        if len(found.told):
            texts[NOTIFICATIONS] = found.told.text()
        PartsSink(self._folder).write(batch, texts, metrics)

    def close(self) -> None:
        """There is nothing to be closed."""
