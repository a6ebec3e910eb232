"""The files of the relay workloads: views, sites and documents."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np

from tidings.files import GeneratedFiles
from tidings.model.errors import UsageError
from tidings.relay.json_document import ROOT as JSON_ROOT
from tidings.relay.pattern import Axis, Pattern
from tidings.relay.workloads.documents import document_json, document_xml
from tidings.relay.workloads.dtd import VALUES
from tidings.relay.workloads.views import distinct_views, repeated_views


def views(
    *,
    seed: int = 0,
    views: int = 100_000,
    distinct: int | None = None,
    values: int = len(VALUES),
    format: str = "xml",
    sites: int | None = None,
    capacity: int | None = None,
) -> tuple[GeneratedFiles, ...]:
    """views.jsonl, and sites.jsonl if there are sites.

    distinct: how many differ, all unless it is given. values: how many predicates choose from. format: of the documents they
    are for. sites: among how many they are spread. capacity: what every site may feed.
    """
    if distinct is not None and distinct > views:
        raise UsageError(f"--distinct {distinct} of --views {views}: no more can differ than there are")
    if capacity is not None and sites is None:
        raise UsageError("--capacity is what each site may feed: say how many --sites there are")
    _check_values(values)
    is_repeated = distinct is not None and distinct < views
    patterns = repeated_views(seed, views, distinct or 0, values) if is_repeated else distinct_views(seed, values)
    texts = (_text(pattern, format) for pattern in islice(patterns, views))
    made = [GeneratedFiles("views", views, {"views.jsonl": _view_lines(texts, seed, views, sites)})]
    if sites is not None:
        made.append(GeneratedFiles("sites", sites, {"sites.jsonl": _site_lines(seed, sites, capacity)}))
    return tuple(made)


def documents(
    *, seed: int = 0, documents: int = 200, values: int = len(VALUES), format: str = "xml"
) -> tuple[GeneratedFiles, ...]:
    """Files 0001.xml and so on, in the folder documents."""
    _check_values(values)
    make = document_json if format == "json" else document_xml
    width = max(4, len(str(documents)))
    files = {f"documents/{n:0{width}}.{format}": _one(make, seed, n, values) for n in range(1, documents + 1)}
    return (GeneratedFiles("documents", documents, files),)


def _check_values(values: int) -> None:
    if values > len(VALUES):
        raise UsageError(f"--values {values}: there are {len(VALUES)} to choose from")


def _one(make: Callable[[int, int, int], bytes], seed: int, number: int, values: int) -> Iterator[bytes]:
    yield make(seed, number, values)


def _text(pattern: Pattern, format: str) -> str:
    """The whole of a JSON document is named `root`; the site is a key of it."""
    return f"/{JSON_ROOT}{pattern.text}" if format == "json" and pattern.root.axis is Axis.CHILD else pattern.text


def _view_lines(texts: Iterator[str], seed: int, views: int, sites: int | None) -> Iterator[bytes]:
    rng = np.random.default_rng([seed, 2])
    places = [None] * views if sites is None else rng.integers(1, sites + 1, size=views).tolist()
    for number, (text, place) in enumerate(zip(texts, places, strict=True), 1):
        record = {"id": f"v{number}", "pattern": text}
        if place is not None:
            record["site"] = f"s{place}"
        yield json.dumps(record).encode()


def _site_lines(seed: int, sites: int, capacity: int | None) -> Iterator[bytes]:
    positions = np.random.default_rng([seed, 3]).random((sites, 2)).round(4).tolist()
    for number, (x, y) in enumerate(positions, 1):
        feeds = {} if capacity is None else {"capacity": capacity}
        yield json.dumps({"id": f"s{number}", **feeds, "x": x, "y": y}).encode()
