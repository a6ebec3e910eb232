"""The page about a run: published beside measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from experiments.topk.outcome import Rows
from tidings.bench.report import shown
from tidings.bench.stamp import describe

_HEAD = """# Top-k: published and measured

Written by `python -m experiments.topk`; what is run is in `../config.toml`, all numbers are in `results.json`.

{stamp}. {seconds:.0f} seconds in all; load average {load} at the end.

Every number is per change, unless something else is said. *Boxes* are the rectangles of the plane of ranges that a change is
sent to; the paper sends a message for each, Tidings one message for each row that is to be told, with all its boxes.
*Look-ups* are searches for the next row to take the place of one that falls (the paper's min_y). Bytes are counted as the
paper does, 24 for a box and 16 for a subscription told by unicast: these sizes give its numbers, which it does not explain.
On our own wire a message has all boxes of a row, and the row with all its columns; unicast sends two messages to those who
lose a row.

"""
Cell = tuple[str, Any, Any]
"""What it is, what the paper says, what was found."""


def page(results: dict[str, Rows], published: dict[str, Any], stamped: dict[str, Any], pictures: list[str]) -> str:
    load = stamped["load_average_end"][0]
    parts = [_HEAD.format(stamp=describe(stamped), seconds=stamped["seconds"], load=load)]
    for name, section in _SECTIONS.items():
        if name in results:
            parts.append(section(results[name], published[name]))
            parts.extend(f"\n![{picture}]({picture})\n\n" for picture in pictures if picture == f"{name}.png")
    return "".join(parts)


def _table(title: str, about: str, head: list[str], lines: list[list[str]]) -> str:
    text = [f"## {title}\n\n", f"{about}\n\n" if about else ""]
    text += [f"| {' | '.join(line)} |\n" for line in (head, ["---"] * len(head), *lines)]
    return "".join(text) + "\n"


@dataclass(frozen=True)
class _Line:
    """A number by k or by subscriptions."""

    label: str
    ours: str
    theirs: str = ""
    note: str = "measured"


def _compared(rows: Rows, said: dict[str, Any], x: str, lines: list[_Line]) -> list[list[str]]:
    """For every line what the paper says, if it does, what was found, and by how much that differs."""
    cells = []
    for line in lines:
        found = [row[line.ours] for row in rows]
        if not line.theirs:
            cells.append([line.label, *map(_number, found)])
            continue
        known = dict(zip(said[x], said[line.theirs], strict=True))
        published = [known.get(row[x]) for row in rows]
        cells.append([f"{line.label}: published", *map(_number, published)])
        cells.append([f"{line.label}: {line.note}", *map(_number, found)])
        if all(published):
            differences = (f"{100 * (own / other - 1):+.1f}%" for own, other in zip(found, published, strict=True))
            cells.append(["difference", *differences])
    return cells


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.3f}" if 0 < abs(value) < 10 and value != round(value) else shown(value)


def _by_k(rows: Rows) -> list[str]:
    return ["k", *(str(row["k"]) for row in rows)]


def _calls(rows: Rows, said: dict[str, Any]) -> str:
    about = "A run depends on a handful of its changes: the mean is of many runs, ± how far one of them is from it."
    lines = [
        _Line("people affected", "affected_mean", "affected", "mean of runs"),
        _Line("± of one run", "affected_sd"),
        _Line("the run of the other tables", "affected"),
    ]
    first = _table("Table I: people affected", about, _by_k(rows), _compared(rows, said, "k", lines))
    lines = [
        _Line("dense", "dense_lookups_mean", "dense_lookups", "mean of runs"),
        _Line("± of one run", "dense_lookups_sd"),
        _Line("sparse", "sparse_lookups", "sparse_lookups"),
        _Line("boxes snapped", "sparse_snaps", "sparse_snaps"),
        _Line("unicast", "unicast_lookups", "unicast_lookups"),
        _Line("boxes, dense", "dense_boxes"),
        _Line("boxes, sparse", "sparse_boxes"),
    ]
    about = (
        "The paper's sparse looks for a row whenever one falls, ours only where that concerns anybody: about half a look-up"
        f" less. Changes for which sparse has more boxes than dense: {sum(row['has_more_boxes'] for row in rows)}."
    )
    return first + _table("Table III: look-ups by k", about, _by_k(rows), _compared(rows, said, "k", lines))


def _growth(rows: Rows, said: dict[str, Any]) -> str:
    lines = [
        _Line("sparse", "sparse_lookups", "sparse_lookups"),
        _Line("boxes snapped", "sparse_snaps", "sparse_snaps"),
        _Line("unicast", "unicast_lookups", "unicast_lookups"),
        _Line("boxes, sparse", "sparse_boxes"),
    ]
    last = rows[-1]
    about = (
        f"Dense, whatever the subscriptions: {_number(last['dense_lookups'])} look-ups (published {said['dense_lookups']}),"
        f" {_number(last['dense_boxes'])} boxes (published {said['dense_boxes']})."
    )
    head = ["subscriptions", *(f"{row['subscriptions']:,}" for row in rows)]
    cells = _compared(rows, said, "subscriptions", lines)
    return _table("Table IV: look-ups by subscriptions, k = 10", about, head, cells)


def _redundancy(rows: Rows, said: dict[str, Any]) -> str:
    names = [key for key in rows[0] if key.startswith("eps_") and key.count("_") == 1]
    lines = [
        *(_Line(f"eps = {name[4:]}", name, name) for name in names),
        _Line("relax", "relax", "relax"),
        *(_Line(f"eps = {name[4:]}, all messages", f"{name}_received") for name in names),
        *(_Line(f"eps = {name[4:]}, bytes", f"{name}_bytes") for name in names),
    ]
    about = (
        "Sparse. Messages received beyond those needed, as a share of the latter. The paper's numbers are those of messages"
        " with the changed row; there is more of it in all messages, also those with rows that take its place. Bytes"
        f" (figure 5b), published: {said['bytes']}."
    )
    return _table("Table II: redundancy", about, _by_k(rows), _compared(rows, said, "k", lines))


def _traffic(rows: Rows, said: dict[str, Any]) -> str:
    ways = ("unicast", "dense", "sparse", "dense_1", "sparse_1")
    head = ["subscriptions, k", *(f"{way.replace('_1', ', eps = 1')}" for way in ways), "unicast over dense, sparse"]
    tables = []
    for title, suffix in (
        ("Figures 4 and 5a: bytes from the server", "bytes"),
        ("Figure 6a: most bytes of one change", "max"),
        ("Bytes on our wire", "wire"),
    ):
        lines = [
            [
                f"{row['subscriptions']:,}, {row['k']}",
                *(shown(row[f"{way}_{suffix}"]) for way in ways),
                ", ".join(shown(row[f"unicast_{suffix}"] / row[f"{way}_{suffix}"]) for way in ("dense", "sparse")),
            ]
            for row in rows
        ]
        tables.append(_table(title, _ABOUT_TRAFFIC[suffix].format_map(said), head, lines))
    return "".join(tables)


_ABOUT_TRAFFIC = {
    "bytes": "Published for 5,000,000 subscriptions and k = 20: unicast {unicast_bytes:,}, dense {dense_bytes:,};"
    " {orders}; {never}.",
    "max": "Published for 5,000,000 subscriptions: unicast {unicast_max:,}, sparse (k = 20) {sparse_max:,}.",
    "wire": "The paper has no such bytes.",
}


def _batch(rows: Rows, said: dict[str, Any]) -> str:
    lines = [
        [f"{label}, {name}", *(f"{row[f'{name}_{what}']:,}" for row in rows)]
        for what, label in (
            ("boxes", "messages sent (boxes)"),
            ("received", "messages received"),
            ("lookups", "look-ups"),
        )
        for name in ("online", "coalesced", "batch")
    ]
    about = f"Totals of the batch. Published: {said['order']}."
    return _table("Figure 9: a batch of which only the outcome matters", about, _by_k(rows), lines)


def _spread(rows: Rows, said: dict[str, Any]) -> str:
    head = [
        "",
        "subscriptions",
        "boxes, sparse over dense",
        "boxes, dense",
        "boxes, sparse",
        "look-ups, dense",
        "look-ups, sparse",
    ]
    names = ("ratio", "dense_boxes", "sparse_boxes", "dense_lookups", "sparse_lookups")
    lines = [[row["case"], f"{row['subscriptions']:,}", *(_number(row[name]) for name in names)] for row in rows]
    more = sum(row["has_more_boxes"] for row in rows)
    about = f"Published: {said['ratio']}. Changes for which sparse has more boxes than dense: {more}."
    return _table("Figure 8a: other distributions", about, head, lines)


def _steps(rows: Rows, said: dict[str, Any]) -> str:
    names = {"dense_bytes": "bytes, dense", "unicast_bytes": "bytes, unicast", "dense_lookups": "look-ups, dense"}
    head = ["c, k", *names.values()]
    lines = [
        [
            f"{row['volatility']:g}, {row['k']}",
            *(_number(row[name]) for name in ("dense_bytes", "unicast_bytes", "dense_lookups")),
        ]
        for row in rows
    ]
    return _table("Figure 8b: scores that move a little at a time", f"Published: {said['bytes']}.", head, lines)


def _stocks(rows: Rows, said: dict[str, Any]) -> str:
    lines = [
        _Line("redundancy, sparse, eps = 1", "eps_1", "eps_1"),
        _Line("redundancy, relax", "relax", "relax"),
        _Line("look-ups, sparse", "sparse_lookups", "sparse_lookups"),
        _Line("boxes snapped, sparse", "sparse_snaps", "sparse_snaps"),
        _Line("look-ups, unicast", "unicast_lookups", "unicast_lookups"),
        _Line("bytes, unicast", "unicast_bytes"),
        _Line("bytes, dense", "dense_bytes"),
        _Line("bytes, sparse", "sparse_bytes"),
        _Line("bytes, sparse, eps = 1", "sparse_1_bytes"),
    ]
    about = (
        "Not the paper's stocks, whose data we do not have: made-up companies, with prices that move as real ones did."
    )
    return _table("Tables V and VI: price-earnings ratios", about, _by_k(rows), _compared(rows, said, "k", lines))


_SECTIONS: dict[str, Callable[[Rows, dict[str, Any]], str]] = {
    "calls": _calls,
    "growth": _growth,
    "redundancy": _redundancy,
    "traffic": _traffic,
    "batch": _batch,
    "spread": _spread,
    "steps": _steps,
    "stocks": _stocks,
}
