"""Documentation is executed: files it shows are written, commands it shows are run, and what it says they print is compared.

`<!-- file: NAME -->` before a block writes it; lines with `$` in a console block are run, the lines below are the expected
output; `[exit N]` stands for an exit code other than 0. A command with a final `&` runs beside the others until the page ends:
a real service, or a stream that is followed (`page_shell`). Python blocks are run too. Blocks behind `<!-- extended -->`, and
all others of the page with them, are run by `make test-all`.
"""

from __future__ import annotations

import gc
import os
import re
import sys
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import psycopg
import pytest
import typer.main

from page_shell import PageShell
from postgres_server import server  # noqa: F401
from service_process import Service
from tidings.bench.postgres import find_server
from tidings.cli.main import app
from tidings.model.catalog import Catalog
from tidings.model.errors import SqlError
from tidings.pipeline.door import Door
from tidings.server.api.errors import STATUS
from tidings.server.api.openapi import openapi
from tidings.sql import parse_catalog

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").rglob("*.md"))]
_BLOCK = re.compile(
    r"(?:<!-- (?:file: (?P<file>\S+)|(?P<extended>extended)) -->\n)?```(?P<language>\w*)\n(?P<body>.*?)```", re.DOTALL
)


_RUNNABLE = [page for page in PAGES if re.search("```(console|python)", page.read_text())]
_ON_SPARK = [page for page in _RUNNABLE if "spark_session(" in page.read_text()]
_ON_SERVICE = [page for page in _RUNNABLE if page.name in ("api.md", "browser.md", "python.md")]
"""These talk to a service with keys, whose start they show but leave to the tests."""
_ON_POSTGRES = [page for page in _RUNNABLE if re.search(r"^\$ createdb ", page.read_text(), re.MULTILINE)]
_ALONE = [page for page in _RUNNABLE if page not in (*_ON_SPARK, *_ON_SERVICE, *_ON_POSTGRES)]


@pytest.mark.parametrize("page", _ALONE, ids=lambda page: page.name)
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("is_extended", [False, pytest.param(True, marks=pytest.mark.extended)], ids=["", "extended"])
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_extended: bool) -> None:
    if is_extended and "<!-- extended -->" not in page.read_text():
        pytest.skip("nothing on this page is extended")
    monkeypatch.chdir(tmp_path)
    _run_page(page, tmp_path, is_extended=is_extended)
    # What examples leave open goes now, and is nobody else's.
    gc.collect()


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("page", _ON_SPARK, ids=lambda page: page.name)
def test_examples_on_spark_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process: `spark_session` gives the session of all tests, which spares starts of Spark."""
    monkeypatch.chdir(tmp_path)
    _run_page(page, tmp_path)


@pytest.mark.parametrize("page", _ON_SERVICE, ids=lambda page: page.name)
@pytest.mark.parametrize("is_extended", [False, pytest.param(True, marks=pytest.mark.extended)], ids=["", "extended"])
def test_examples_on_the_service_run(
    page: Path, service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_extended: bool
) -> None:
    """With the service of all tests, which spares a start."""
    if is_extended and "<!-- extended -->" not in page.read_text():
        pytest.skip("nothing on this page is extended")
    (tmp_path / "data").symlink_to(service.data)
    monkeypatch.chdir(tmp_path)
    _run_page(page, tmp_path, is_extended=is_extended, ports={"8090": str(service.port)})


@pytest.mark.parametrize("page", _ON_POSTGRES, ids=lambda page: page.name)
def test_examples_on_postgres_run(
    page: Path,
    server: str,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As a user who need not say where the database server is."""
    programs = find_server()
    assert programs is not None
    monkeypatch.chdir(tmp_path)
    where = psycopg.conninfo.conninfo_to_dict(server)
    path = os.pathsep.join([str(Path(sys.executable).parent), str(programs), os.environ["PATH"]])
    environment = {"PGHOST": str(where["host"]), "PGUSER": str(where["user"]), "PATH": path}
    _run_page(page, tmp_path, environment=environment)


def _run_page(
    page: Path,
    folder: Path,
    *,
    is_extended: bool = False,
    environment: Mapping[str, str] | None = None,
    ports: Mapping[str, str] | None = None,
) -> None:
    ran = 0
    with PageShell(folder, environment, ports) as shell:
        for block in _BLOCK.finditer(page.read_text()):
            if block["extended"] and not is_extended:
                continue
            if block["file"]:
                (folder / block["file"]).write_text(shell.real(block["body"]))
            elif block["language"] == "console":
                ran += shell.run(block["body"])
            elif block["language"] == "python":
                exec(shell.real(block["body"]), {"__name__": "example"})
                ran += 1
    assert ran > 0


def test_sql_examples_are_served_or_refused_as_said() -> None:
    """Statements in SQL blocks of docs/sql.md are placed; those with a comment below are refused in these words."""
    catalog: Catalog | None = None
    count = 0
    for block in _BLOCK.finditer((ROOT / "docs" / "sql.md").read_text()):
        if block["language"] != "sql":
            continue
        if block["file"]:
            catalog = parse_catalog(block["body"])
            continue
        assert catalog is not None
        lines = [*block["body"].splitlines(), ""]
        for line, below in pairwise(lines):
            if below.startswith("-- "):
                with pytest.raises(SqlError) as caught:
                    Door(catalog).place(line)
                assert below.removeprefix("-- ") in str(caught.value)
            elif not line.startswith("-- "):
                Door(catalog).place(line)
            count += 1
    assert count > 20


def test_every_command_is_documented() -> None:
    text = "".join(page.read_text() for page in PAGES)
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    assert [name for name in commands if f"tidings {name}" not in text and f"`{name}`" not in text] == []


def test_every_route_is_documented() -> None:
    page = (ROOT / "docs" / "api.md").read_text()
    served = {f"{method.upper()} {path}" for path, found in openapi()["paths"].items() for method in found}
    assert served == set(re.findall(r"`((?:GET|POST|PUT|DELETE) /[^`?]*)`", page))
    assert [error for error in STATUS if f"`{error}`" not in page] == []


def test_links_lead_somewhere() -> None:
    broken = [
        (page.name, target)
        for page in PAGES
        for target in re.findall(r"\]\(([^)]+)\)", page.read_text())
        if not target.startswith("http") and not _is_there(page, target)
    ]
    assert broken == []


def _is_there(page: Path, target: str) -> bool:
    """Whether a link leads to a file, and with `#` to a heading there."""
    name, _, heading = target.partition("#")
    file = page.parent / name if name else page
    if not heading or not file.is_file():
        return file.exists()
    titles = re.findall(r"^#+ (.*)", file.read_text(), re.MULTILINE)
    return heading in [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]


_NAMED = re.compile(r"`((?:[\w*]+/)+[\w*.]*|[\w*]+\.(?:py|js))`")
_INSIDE = [ROOT / "ARCHITECTURE.md", ROOT / "docs" / "glossary.md", ROOT / "docs" / "contributing.md"]
_INSIDE += (ROOT / "src").rglob("README.md")


@pytest.mark.parametrize("page", _INSIDE, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_that_are_named_exist(page: Path) -> None:
    """From the root, from the package, or from the page's folder; a name alone is of a file of the package."""
    places = (ROOT, ROOT / "src" / "tidings", page.parent)

    def exists(name: str) -> bool:
        return any(any(place.glob(name)) for place in places) if "/" in name else any(places[1].rglob(name))

    assert [name for name in _NAMED.findall(page.read_text()) if not exists(name)] == []


def test_the_architecture_is_read_in_one_go() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_bytes()) <= 12_000
