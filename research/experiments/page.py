"""The page about a run: what is published beside what was measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from research.experiments.paper import Config, Results, Rows
from tidings.bench.report import shown
from tidings.bench.stamp import describe

_HEAD = """# {title}: published and measured

Written by `python -m research.experiments.{name}`; what is run is in `../config.toml`, all numbers are in `results.json`.

{stamp}. {seconds:.0f} seconds in all; load average {load} at the end.

"""


def opening(title: str, name: str, stamped: dict[str, Any]) -> str:
    """The first lines of the page of a paper."""
    load = stamped["load_average_end"][0]
    return _HEAD.format(title=title, name=name, stamp=describe(stamped), seconds=stamped["seconds"], load=load)


def assembled(
    opened: str,
    head: Path,
    sections: Mapping[str, Callable[[Rows, Config], str]],
    results: Results,
    published: Config,
    pictures: Sequence[str],
) -> str:
    """A page: its opening, the text of a file, and the sections that there are results for, each with its picture."""
    parts = [opened, head.read_text(encoding="utf-8"), "\n"]
    for name, make in sections.items():
        if name in results:
            parts.append(make(results[name], published[name]))
            parts.extend(f"\n![{picture}]({picture})\n\n" for picture in pictures if picture == f"{name}.png")
    return "".join(parts)


def section(title: str, about: str, head: list[str], lines: list[list[str]]) -> str:
    """A section of a page: what it is about, and a table."""
    return f"## {title}\n\n{about}\n\n" + table(head, lines)


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    text = [f"| {' | '.join(line)} |\n" for line in (head, ["---"] * len(head), *lines)]
    return "".join(text) + "\n"


class Line(NamedTuple):
    """A number by k, by subscriptions, .."""

    label: str
    ours: str
    theirs: str = ""
    """What it is called among the published numbers; empty: not published."""
    note: str = "measured"


def compared(rows: Rows, said: dict[str, Any], x: str, lines: Iterable[Line]) -> list[list[str]]:
    """For every line what the paper says, if it does, what was found, and by how much that differs."""
    cells = []
    for line in lines:
        found = [row[line.ours] for row in rows]
        if not line.theirs:
            cells.append([line.label, *map(number, found)])
            continue
        known = dict(zip(said[x], said[line.theirs], strict=True))
        published = [known.get(row[x]) for row in rows]
        cells.append([f"{line.label}: published", *map(number, published)])
        cells.append([f"{line.label}: {line.note}", *map(number, found)])
        if all(published):
            differences = (f"{100 * (own / other - 1):+.1f}%" for own, other in zip(found, published, strict=True))
            cells.append(["difference", *differences])
    return cells


def number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.3f}" if 0 < abs(value) < 10 and value != round(value) else shown(value)
