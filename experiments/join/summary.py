"""The page about a run: published beside measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from experiments.join.claims import Found, by_widths, check
from experiments.join.outcome import BEST, LABELS, Rows, figures
from tidings.bench.report import shown
from tidings.bench.stamp import describe

_HEAD = """# Joins: published and measured

Written by `python -m experiments.join`; what is run is in `../config.toml`, all numbers are in `results.json`.

{stamp}. {seconds:.0f} seconds in all; load average {load} at the end.

Numbers are per insertion of a row, unless something else is said. Bytes are counted in three places, headers, regions and rows:

- *sent*: what leaves the server, every message once. This is the paper's stress at the server, had it but one neighbour.
- *carried*: every message once to each of 1,000 brokers that has somebody for it; a *hop* is one such copy. No network is
  simulated: one would carry this much at least, more where the way to a broker leads over others. A subscription has one
  broker, the same for all strategies. Brokers have as many subscriptions each, next to each other by their ranges on R and S
  (of four tables: on S and the one it is filtered by at first), cut where ranges are shortest for their spread. This is
  compared with the paper's network traffic. Unicast messages, too, count once.
- *delivered*: every message once to each subscription in its region: the last hop.

All strategies see the same changes, few enough for the slowest. Time is that of the processor in the fastest of some batches;
the mean of all for Enum-J, Enum-SJ, Ref-SJ-Sub and min. *With output* adds what it takes to write the bytes sent at 70 Mbit/s,
which the paper has in its times.

{held} of {claims} claims of the paper hold. Where its words have no number, the bound is ours, in `../claims.py`: insignificant
is less than half as much again, slightly more is less than twice, a wide margin at least twice.

What to keep in mind:

- The paper's table of distributions is lost. Widths of ranges, centres of hot spots and values of S are ours. S.c was chosen
  such that with overlap fewer are affected and more selected, as its text says: that figure 19 goes the right way is no
  independent confirmation. Nor is the order of costs in figure 13: all tables change alike because that gives it. In the star
  94% of the changes are of facts, which is ours as well. The factors of figures 13 and 14 depend on widths: some are tried.
  In the star ranges on dimensions are short and those on facts wide, as who asks about a star selects customers and products
  rather than sales; with short ranges on facts, dimensions are exposed by almost every fact, and all three factors are lost.
  Its insertions are about a hundred, so that its numbers are good for one digit.
- The factors also depend on where subscriptions live. Here those of several signatures share brokers if they filter S alike.
  With brokers for each signature, cut by all its tables, Ref-J would reach fewer of them.
- About {share:.0%} of those who select an R row have a partner for it with the usual sizes, so that no exact scheme can have
  less than this share of Rel-Sel's deliveries, whatever the paper's factor.
- A row that goes or changes is dropped, by its key, by everyone who may hold it: with few partners by those who have had one,
  with many by all who selected it. The paper has messages for rows that lose their last partner instead. Deletions are
  therefore shown for themselves.

"""


def page(results: dict[str, Rows], published: dict[str, Any], stamped: dict[str, Any], pictures: list[str]) -> str:
    found = check(results, published)
    holds = [claim.holds for claims in found.values() for claim in claims.values()]
    head = {
        "stamp": describe(stamped),
        "seconds": stamped["seconds"],
        "load": stamped["load_average_end"][0],
        "held": sum(holds),
        "claims": len(holds),
        "share": _affected_share(results),
    }
    parts = [_HEAD.format(**head)]
    for name, (title, section) in _SECTIONS.items():
        if name in results:
            parts.append(f"## {title}\n\n" + _claims(published[name]["claims"], found[name]))
            parts.append(section(results[name]))
            parts.extend(f"![{picture}]({picture})\n\n" for picture in pictures if picture == f"{name}.png")
    return "".join(parts)


def _affected_share(results: dict[str, Rows]) -> float:
    """Of those who select a row, those who have a partner for it."""
    for rows in results.values():
        told = {row["strategy"]: row["deliveries"] for row in reversed(rows) if "deliveries" in row}
        if BEST in told and "rel-sel" in told:
            return float(told[BEST] / told["rel-sel"])
    return float("nan")


def _claims(said: dict[str, str], found: dict[str, Found]) -> str:
    lines = [[said[key], "yes" if claim.holds else "**no**", claim.measured] for key, claim in found.items()]
    return _table("", ["published", "holds", "measured"], lines)


def _table(title: str, head: list[str], lines: list[list[str]]) -> str:
    text = [f"**{title}**\n\n" if title else ""]
    text += [f"| {' | '.join(line)} |\n" for line in (head, ["---"] * len(head), *lines)]
    return "".join(text) + "\n"


def _by(x: str, *names: tuple[str, str]) -> Callable[[Rows], str]:
    """Tables of some figures, a line per strategy, a column per x."""

    def section(rows: Rows) -> str:
        return "".join(_figure(rows, x, name, title) for name, title in names)

    return section


def _figure(rows: Rows, x: str, name: str, title: str) -> str:
    found = figures(rows, x, name)
    strategies = list(dict.fromkeys(strategy for of_x in found.values() for strategy in of_x))
    lines = [
        [LABELS[strategy], *(shown(of_x.get(strategy)) for of_x in found.values())]
        for strategy in strategies
        if any(of_x.get(strategy) for of_x in found.values())
    ]
    return _table(title, [_X[x], *(f"{value:,.0f}" for value in found)], lines)


_X = {
    "subscriptions": "subscriptions",
    "r_size": "rows of R",
    "rate": "S rows for an R row",
    "payload": "bytes of payload",
    "overlap": "overlap",
}
_SENT = ("sent", "Bytes sent by the server")
_CARRIED = ("carried", "Bytes carried to brokers")
_DELIVERED = ("delivered", "Bytes delivered")
_TIMES = (
    ("us", "Time at the server, µs (figure 5)"),
    ("output_us", "Time at the server with output, µs (figure 5)"),
)


def _general(rows: Rows) -> str:
    text = []
    for of_width in by_widths(rows):
        lines = []
        for row in sorted(of_width, key=lambda row: float(row["carried"])):
            notes = [
                *(["drawn"] if row.get("is_drawn") else []),
                *(f"least cost by {how}" for how in ("numbers", "sample") if row.get(f"is_best_by_{how}")),
            ]
            numbers = [shown(row[name]) for name in ("messages", "sent", "carried", "delivered", "delete_carried")]
            lines.append([LABELS[row["strategy"]], row.get("choice", ""), ", ".join(notes), *numbers])
        head = ["", "S filtered", "", "messages", "sent", "carried", "delivered", "carried per deletion"]
        text.append(_table(_widths(of_width[0], "center_width", "S"), head, lines))
    return "".join(text)


def _star(rows: Rows) -> str:
    names = ("messages", "sent", "carried", "delivered", "delete_carried", "update_carried")
    head = ["payload of facts", "", *names[:4], "carried per deletion", "carried per update"]
    text = []
    for of_width in by_widths(rows):
        lines = [
            [str(row["fact_payload"]), LABELS[row["strategy"]], *(shown(row.get(name)) for name in names)]
            for row in of_width
        ]
        text.append(_table(_widths(of_width[0], "fact_width", "facts"), head, lines))
    return "".join(text)


def _widths(row: dict[str, Any], center: str, name: str) -> str:
    return f"Ranges {row['width']:,} wide, on {name} {row[center]:,}"


_SECTIONS: dict[str, tuple[str, Callable[[Rows], str]]] = {
    "growth": (
        "Figures 5, 6 and 17, tables 3 and 4: subscriptions",
        _by(
            "subscriptions",
            *_TIMES,
            ("carried", "Bytes carried to brokers (figure 6)"),
            ("hops", "Hops (figure 17)"),
            ("sent", "Bytes sent by the server (table 3)"),
            ("messages", "Messages sent by the server (table 3)"),
            ("description", "Bytes of the description of an R row (table 4)"),
            ("points", "Points of its skyline (table 4)"),
            _DELIVERED,
            ("delete_carried", "Bytes carried to brokers per deletion"),
            ("delete_delivered", "Bytes delivered per deletion"),
        ),
    ),
    "database": ("Figure 7: rows of R", _by("r_size", _CARRIED, _SENT, _DELIVERED)),
    "output": (
        "Figures 8 and 9: partners",
        _by("rate", *((name, title.replace("figure 5", "figure 8")) for name, title in _TIMES), _CARRIED, _SENT),
    ),
    "stocks": ("Figure 10: price-earnings ratios and ratings", _by("subscriptions", _CARRIED, _SENT, _DELIVERED)),
    "payload": ("Figure 18: payload", _by("payload", _CARRIED, _SENT, _DELIVERED)),
    "overlap": (
        "Figures 19 and 20: overlap",
        _by(
            "overlap",
            ("carried", "Bytes carried to brokers (figure 19)"),
            _SENT,
            ("deliveries", "Subscriptions told"),
            ("last_hop", "Bytes carried and delivered (figure 20)"),
        ),
    ),
    "general": ("Figure 13: decompositions of joins of four tables", _general),
    "star": ("Figure 14: a star", _star),
}
