"""Sources and sinks by name: what cannot be is said before anything is written or read."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from tidings.endpoint import Endpoint
from tidings.model.errors import UsageError
from tidings.spark.progress import _difference
from tidings.spark.sinks import open_sink
from tidings.spark.sinks.guard import Guard
from tidings.spark.sources import check


def test_a_folder_of_output_belongs_to_one_run(tmp_path: Path) -> None:
    sink = Endpoint("files", str(tmp_path / "out"))
    first = open_sink(sink, Guard(threading.Event()), "first")
    assert first.parts == str((tmp_path / "out").resolve())
    assert not (tmp_path / "out").exists(), "nothing is made by looking"
    first.prepare()
    assert open_sink(sink, Guard(threading.Event()), "first").parts
    with pytest.raises(UsageError, match="has the output of another run"):
        open_sink(sink, Guard(threading.Event()), "second")


def test_a_folder_with_output_of_unknown_origin_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "manifest-00000000.json").write_text("{}")
    with pytest.raises(UsageError, match="has the output of another run"):
        open_sink(Endpoint("files", str(tmp_path)), Guard(threading.Event()), "first")


@pytest.mark.parametrize(
    ("endpoint", "problem"),
    [
        (Endpoint("files"), "needs folder"),
        (Endpoint("files", "s3a://bucket/out"), "folders that this machine has"),
        (Endpoint("console", "", {"only": "answers"}), "the option 'only' of a sink is notifications"),
    ],
)
def test_sinks_that_cannot_be(endpoint: Endpoint, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        open_sink(endpoint, Guard(threading.Event()), "run")


def test_sources_of_spark_begin_where_their_own_options_say() -> None:
    with pytest.raises(UsageError, match="--from is not for Spark's source 'delta'"):
        check(Endpoint("delta", "table"), "latest")
    with pytest.raises(UsageError, match="is read from its first file on"):
        check(Endpoint("files", "folder"), "latest")


@pytest.mark.parametrize(
    ("latest", "end", "behind"),
    [
        ({"sequence": 12}, {"sequence": 5}, 7),
        ({"t": {"0": 10, "1": 4}, "u": {"0": 1}}, {"t": {"0": 7, "1": 4}}, 4),
        ({"lsn": "0/1"}, {"lsn": "0/0"}, None),
        (5, 3, None),
    ],
)
def test_how_far_a_source_is_ahead(latest: Any, end: Any, behind: int | None) -> None:
    assert _difference(latest, end) == behind
