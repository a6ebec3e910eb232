"""Views, sites, plans and documents in files, with errors that say which line and why.

What a user has written for this run (views, sites) is refused as a whole at the first mistake. Documents are a stream: one that
cannot be read is given as a DocumentError, for quarantine, and the next one follows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, overload

from tidings.model.catalog import Catalog
from tidings.model.errors import SqlError, UsageError
from tidings.relay.document import DOCUMENT_BYTES_MAX, Document
from tidings.relay.errors import DocumentError, PatternError
from tidings.relay.json_document import parse_json
from tidings.relay.pattern import Pattern, parse_pattern
from tidings.relay.plan import OWN, RelayPlan, finite_number, parse_plan
from tidings.relay.plan import PUBLISHER as PUBLISHER
from tidings.relay.row_views.document import RowDocument, parse_rows
from tidings.relay.row_views.query import RowQuery, parse_row_query


@dataclass(frozen=True, slots=True)
class View:
    """One line of views.jsonl. `site` is None for a view that is its own site."""

    id: str
    query: Pattern | RowQuery
    site: str | None = None


def pattern_of(view: View) -> Pattern:
    """UsageError for a view over rows."""
    if not isinstance(view.query, Pattern):
        raise UsageError(f"view {view.id!r} is over rows: only views over documents can be used here")
    return view.query


@dataclass(frozen=True, slots=True)
class Site:
    """One line of sites.jsonl: what a site may feed, and where it is. None: as for all sites, or nowhere in particular.

    bandwidth: bytes a second that it may send.
    """

    id: str
    capacity: int | None = None
    position: tuple[float, float] | None = None
    bandwidth: float | None = None


_Record = TypeVar("_Record", View, Site)


class _LineError(Exception):
    """Why a line cannot be used."""


def read_views(path: Path, sites: Collection[str] | None = None, catalog: Catalog | None = None) -> list[View]:
    """The views in the order of the file. UsageError for a mistake; for an unknown site, if the ids of all sites are given.

    catalog: what views over rows need.
    """

    def view(record: dict[str, Any]) -> View:
        found = _view(record, catalog)
        if found.site is not None and sites is not None and found.site not in sites:
            raise _LineError(f"view {found.id!r} is at the site {found.site!r}, which the sites do not have")
        return found

    return _read(path, "view", view)


def read_sites(path: Path) -> list[Site]:
    """The sites in the order of the file. UsageError for a mistake."""
    return _read(path, "site", _site)


def read_plan(path: Path) -> RelayPlan:
    """UsageError for a file that cannot be read, or is no plan."""
    try:
        return parse_plan(path.read_bytes())
    except OSError as error:
        raise UsageError(f"cannot read the plan {path}: {error.strerror}") from None
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


@overload
def read_documents(folder: Path) -> Iterator[tuple[str, Document | DocumentError]]: ...
@overload
def read_documents(
    folder: Path, catalog: Catalog | None
) -> Iterator[tuple[str, Document | RowDocument | DocumentError]]: ...
def read_documents(
    folder: Path, catalog: Catalog | None = None
) -> Iterator[tuple[str, Document | RowDocument | DocumentError]]:
    """Name and content of every document of a folder, by code points of their names; of one that cannot be read, why.

    Names end in .xml or .json (trees) or, with a catalog, .jsonl (rows), in any case. Hidden files are passed over. UsageError
    if there is no document, or no folder.
    """
    return ((path.name, _document(path, catalog)) for path in document_paths(folder))


def read_contents(folder: Path) -> Iterator[tuple[str, bytes | DocumentError]]:
    """As `read_documents`, as bytes: for those who parse them elsewhere."""
    return ((path.name, _content(path)) for path in document_paths(folder))


def document_paths(folder: Path) -> list[Path]:
    """In the order in which they are published. UsageError if there is none, or no folder."""
    try:
        paths = sorted((path for path in folder.iterdir() if not path.name.startswith(".")), key=lambda path: path.name)
    except OSError as error:
        raise UsageError(f"cannot read the folder of documents {folder}: {error.strerror}") from None
    if not paths:
        raise UsageError(f"no documents in the folder {folder}: put files there that end in .xml or .json")
    return paths


@overload
def parse_document(name: str, data: bytes) -> Document: ...
@overload
def parse_document(name: str, data: bytes, catalog: Catalog | None) -> Document | RowDocument: ...
def parse_document(name: str, data: bytes, catalog: Catalog | None = None) -> Document | RowDocument:
    """The tree of a document, or its rows; its name says which, and whether it is XML. DocumentError if it cannot be read."""
    match Path(name).suffix.lower():
        case ".json":
            return parse_json(data)
        case ".xml":
            from tidings.relay.xml_document import parse_xml  # only here: JSON needs no lxml

            return parse_xml(data)
        case ".jsonl" if catalog is not None:
            return parse_rows(data, catalog)
        case ".jsonl":
            raise DocumentError("rows, whose tables are not known: name the catalog with --catalog")
        case _:
            raise DocumentError("neither XML nor JSON: the name of a document ends in .xml or .json (rows: .jsonl)")


def _document(path: Path, catalog: Catalog | None) -> Document | RowDocument | DocumentError:
    content = _content(path)
    if isinstance(content, DocumentError):
        return content
    try:
        return parse_document(path.name, content, catalog)
    except DocumentError as error:
        return DocumentError(str(error))  # a new one: the traceback of the other keeps the document in memory


def _content(path: Path) -> bytes | DocumentError:
    if not path.is_file():
        return DocumentError("not a file")
    try:
        with path.open("rb") as source:
            # One byte more than the limit tells that there are too many.
            return source.read(DOCUMENT_BYTES_MAX + 1)
    except OSError as error:
        return DocumentError(f"cannot be read: {error.strerror}")


def _view(record: dict[str, Any], catalog: Catalog | None) -> View:
    id = _id(record, "view", {"id", "pattern", "site", "sql"})
    if id == PUBLISHER:
        raise _LineError(f"no view can have the id {PUBLISHER!r}: in plans it is where documents come from")
    site = record.get("site")
    if site == PUBLISHER:
        raise _LineError(f"view {id!r} cannot be at the site {PUBLISHER!r}, which is where documents come from")
    if site is not None and (not isinstance(site, str) or not site or site.startswith(OWN)):
        raise _LineError(f'the "site" of view {id!r} is not the id of a site, a text')
    return View(id, _query(id, record.get("pattern"), record.get("sql"), catalog), site)


def _query(id: str, pattern: object, sql: object, catalog: Catalog | None) -> Pattern | RowQuery:
    if pattern is not None and sql is not None:
        raise _LineError(f'view {id!r} has both "pattern" and "sql": a view is over documents, or over rows')
    if isinstance(pattern, str):
        try:
            return parse_pattern(pattern)
        except PatternError as error:
            raise _LineError(f"the pattern of view {id!r} is refused: {error}") from None
    if not isinstance(sql, str):
        raise _LineError(f'view {id!r} has no "pattern" and no "sql", which are texts')
    if catalog is None:
        raise _LineError(f'view {id!r} has "sql": name the catalog of its tables with --catalog')
    try:
        return parse_row_query(sql, catalog)
    except SqlError as error:
        raise _LineError(f"the SQL of view {id!r} is refused: {error}") from None


def _site(record: dict[str, Any]) -> Site:
    id = _id(record, "site", {"id", "capacity", "bandwidth", "x", "y"})
    capacity = record.get("capacity")
    if capacity is not None and (type(capacity) is not int or capacity < 1):
        raise _LineError(f'the "capacity" of site {id!r} is not a whole number from 1 on: how many views it may feed')
    bandwidth = record.get("bandwidth")
    if bandwidth is not None and ((bandwidth := finite_number(bandwidth)) is None or bandwidth <= 0):
        raise _LineError(f'the "bandwidth" of site {id!r} is not a number above 0: bytes a second that it may send')
    x, y = record.get("x"), record.get("y")
    position = None if x is None and y is None else (_coordinate(id, "x", x), _coordinate(id, "y", y))
    return Site(id, capacity, position, bandwidth)


def _coordinate(id: str, name: str, value: object) -> float:
    found = finite_number(value)
    if found is None:
        raise _LineError(f'the "{name}" of site {id!r} is not a finite number; a site has both "x" and "y", or neither')
    return found


def _id(record: dict[str, Any], what: str, fields: set[str]) -> str:
    id = record.get("id")
    if not isinstance(id, str) or not id:
        raise _LineError(f'the {what} has no "id", which is a text')
    unknown = sorted(set(record) - fields)
    if unknown:
        raise _LineError(f"{what} {id!r} has an unknown field {unknown[0]!r}: there are {', '.join(sorted(fields))}")
    return id


def _read(path: Path, what: str, make: Callable[[dict[str, Any]], _Record]) -> list[_Record]:
    """What the lines are made into; empty lines are passed over. UsageError for a mistake, a repeated id, and no lines."""
    found: dict[str, _Record] = {}
    lines: dict[str, int] = {}
    for number, line in _lines(path, what):
        try:
            record = make(_object(line))
            if record.id in found:
                raise _LineError(f"{what} {record.id!r} is on line {lines[record.id]} already")
        except _LineError as error:
            raise UsageError(f"{path}, line {number}: {error}") from None
        found[record.id] = record
        lines[record.id] = number
    if not found:
        raise UsageError(f"no {what}s in {path}: write one a line, as JSON")
    return list(found.values())


def _lines(path: Path, what: str) -> Iterator[tuple[int, bytes]]:
    try:
        with path.open("rb") as source:
            for number, line in enumerate(source, 1):
                text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
                if text.strip():
                    yield number, text.rstrip(b"\r\n")
    except OSError as error:
        raise UsageError(f"cannot read the {what}s {path}: {error.strerror}") from None


def _object(line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line.decode())
        # Ids and patterns are written to other files later.
        json.dumps(record, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise _LineError(f"not JSON: {error.msg} at column {error.colno}") from None
    except UnicodeDecodeError as error:
        raise _LineError(f"not JSON: byte {error.start + 1} is not UTF-8") from None
    except UnicodeEncodeError:
        raise _LineError("half a surrogate pair in a text") from None
    except (ValueError, RecursionError) as error:
        raise _LineError(f"not JSON: {error}") from None
    if not isinstance(record, dict):
        raise _LineError("not a JSON object")
    return record
