"""Pictures and page of the relay experiments."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from research.experiments.page import assembled, number, opening, section
from research.experiments.paper import Config, Results, Rows
from research.experiments.plots import Axes, Panel, Picture

_PLANS = {"least_use": "least use", "less_latency": "less latency"}
_COLOURS = ("tab:blue", "tab:orange", "tab:green", "tab:red", "tab:purple", "tab:brown")


def _of_set(place: int, rows: Rows) -> tuple[str, Rows]:
    """The name and the rows of the first set, or of the second; of the last where there are fewer."""
    names = list(dict.fromkeys(row["set"] for row in rows))
    name = names[min(place, len(names) - 1)]
    return name, [row for row in rows if row["set"] == name]


def _by_capacity(rows: Rows) -> dict[Any, Rows]:
    found: dict[Any, Rows] = {}
    for row in rows:
        found.setdefault(row["capacity"], []).append(row)
    return found


def _passes(place: int) -> Panel:
    """Latency over seconds, a curve for each capacity."""

    def panel(axis: Axes, rows: Rows) -> None:
        name, rows = _of_set(place, rows)
        for (capacity, each), colour in zip(_by_capacity(rows).items(), _COLOURS, strict=False):
            seconds, shares = [row["seconds"] for row in each], [row["latency_share"] for row in each]
            axis.plot(seconds, shares, "o-", color=colour, label=f"capacity {capacity}", markersize=4)
        axis.set_title(name, fontsize=10)
        axis.set_xlabel("CPU seconds of latency passes")
        axis.set_ylabel("latency, % of the plan of least use")
        axis.set_ylim(bottom=0)

    return panel


def _level_curves(columns: dict[str, str], place: int | None = None) -> Panel:
    """Views per level, on a log axis: a curve for each capacity and each of the columns."""

    def panel(axis: Axes, rows: Rows) -> None:
        title = ", ".join(columns.values()) if len(columns) == 1 else "before: dotted, after: solid"
        if place is not None:
            name, rows = _of_set(place, rows)
            title = f"{name}; {title}"
        for row, colour in zip(rows, _COLOURS, strict=False):
            for column, line in zip(columns, ("s:", "o-") if len(columns) > 1 else ("o-",), strict=True):
                points = [(level, count) for level, count in enumerate(row[column], 1) if count]
                label = f"capacity {row['capacity']}" if line == "o-" else None
                axis.plot(*zip(*points, strict=True), line, color=colour, label=label, markersize=3)
        axis.set_yscale("log")
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("level")
        axis.set_ylabel("views")

    return panel


def _spans(what: str, label: str) -> Panel:
    """Least, mean and most by capacity, for both kinds of plans."""

    def panel(axis: Axes, rows: Rows) -> None:
        for (plan, name), colour, shift in zip(_PLANS.items(), _COLOURS, (-0.1, 0.1), strict=False):
            least, mean, most = ([row[f"{plan}_{what}_{kind}_s"] for row in rows] for kind in ("min", "mean", "max"))
            at = [place + shift for place in range(len(rows))]
            below = [value - low for value, low in zip(mean, least, strict=True)]
            above = [high - value for value, high in zip(mean, most, strict=True)]
            axis.errorbar(at, mean, yerr=[below, above], fmt="o-", color=colour, label=name, capsize=3, markersize=4)
        axis.set_xticks(range(len(rows)), [str(row["capacity"]) for row in rows])
        axis.set_xlabel("capacity")
        axis.set_ylabel(label)
        axis.set_ylim(bottom=0)

    return panel


_WAN_PANELS = [
    *(_level_curves({f"{plan}_levels": name}) for plan, name in _PLANS.items()),
    _spans("latency", "view latency, s: least, mean, most"),
    _spans("delivery", "document delivery time, s: least, mean, most"),
]
PICTURES = {
    "latency": Picture("Latency while it is reduced", [_passes(1), _passes(2)]),
    "levels": Picture("Views per level", [_level_curves(_PLANS, 1), _level_curves(_PLANS, 2)]),
    "wan": Picture("10,000 views in a wide-area network", _WAN_PANELS),
}


def page(results: Results, published: Config, stamped: Config, pictures: list[str]) -> str:
    head = Path(__file__).parent / "head.md"
    return assembled(opening("Relay", "relay", stamped), head, _SECTIONS, results, published, pictures)


_SET_LINES = (
    ("views", "views"),
    ("distinct", "distinct views"),
    ("predicates_per_view", "predicates per view"),
    ("predicates_per_node", "predicates per node"),
    ("nodes_per_view", "nodes per view"),
    ("return_nodes_per_view", "return nodes per view"),
    ("embeddings", "embeddings"),
    ("dropped", "embeddings left out against cycles"),
    ("embedding_share", "views in which another embeds, %"),
    ("rewritings", "rewritings"),
    ("edges", "edges to and from rewritings"),
    ("rewritten_views", "views that others can feed"),
    ("inputs_per_rewriting", "inputs per rewriting"),
    ("uses_per_view", "rewritings that use a view, mean"),
    ("parse_s", "views parsed and grouped, s"),
    ("sizes_s", "sizes by sample documents, s"),
    ("embeddings_and_rewritings_s", "embeddings and rewritings, s"),
    ("embeddings_and_rewritings_cpu_s", "embeddings and rewritings, CPU s"),
    ("peak_mb", "most memory of the process so far, MB"),
)


def _sets(rows: Rows, said: Config) -> str:
    together = [one + other for one, other in zip(said["embeddings_s"], said["rewritings_s"], strict=True)]
    said = said | {"embeddings_and_rewritings_s": together}
    head = [""]
    for row in rows:
        head += [f"{row['set']}: published", "measured"]
    lines = []
    for key, label in _SET_LINES:
        line = [label]
        for place, row in enumerate(rows):
            line += [_cell(key, _published(said.get(key), place)), _cell(key, row[key])]
        lines.append(line)
    about = (
        f"Published with {said['cores']} cores. Embeddings and rewritings are found in one go here; published, they took"
        f" {said['embeddings_s'][0]} s and {said['rewritings_s'][0]} s of the first set, {said['embeddings_s'][1]} s and"
        f" {said['rewritings_s'][1]} s of the second. Equal views are planned as one here; rewritings, edges and uses count for"
        " each of them, as the paper's. Views are distinct if their messages are."
    )
    return section("Table 2: view sets, embeddings and rewritings", about, head, lines)


def _cell(key: str, value: float | None) -> str:
    """Shares that are almost all keep their digits."""
    return f"{value:.2f}" if value is not None and key.endswith("_share") else number(value)


def _published(value: Any, place: int) -> float | None:
    """Of a set. Where there is one number, it is the first set's."""
    if isinstance(value, list):
        found: float | None = value[place] if place < len(value) else None
        return found
    return value if place == 0 else None


def _plans(rows: Rows, said: Config) -> str:
    names = list(dict.fromkeys(row["set"] for row in rows))
    text = []
    for name in names:
        # Sets are named by how many of the views differ.
        views, distinct = (int(count.replace(",", "")) for count in re.findall(r"[\d,]*\d", name))
        place, key = (0, "distinct") if views == distinct else (1, "repeated")
        of_set = [row for row in rows if row["set"] == name]
        most = of_set[-1]["use"]
        theirs = {capacity: place for place, capacity in enumerate(said["capacity"])}

        def known(what: str, row: Any, key: str = key, theirs: dict[Any, int] = theirs) -> float | None:
            value = said[f"{key}_{what}"][theirs[row["capacity"]]] if row["capacity"] in theirs else ""
            return None if value == "" else float(value)

        head = ["", *(f"capacity {row['capacity']}" for row in of_set)]
        lines = [
            ["rewritten, %: published", *(number(known("rewritten_share", row)) for row in of_set)],
            ["rewritten, %: measured", *(f"{row['rewritten_share']:.2f}" for row in of_set)],
            [
                "use over the last one's: published",
                *(_ratio(known("use", row), known("use", of_set[-1])) for row in of_set),
            ],
            ["use over the last one's: measured", *(_ratio(row["use"], most) for row in of_set)],
            ["inputs per rewriting: published", *(number(known("inputs_per_rewriting", row)) for row in of_set)],
            ["inputs per rewriting: measured", *(number(row["inputs_per_rewriting"]) for row in of_set)],
            ["use", *(f"{row['use']:,.0f}" for row in of_set)],
            ["bound", *(f"{row['bound']:,.0f}" for row in of_set)],
            ["gap, %", *(f"{row['gap_percent']:.4f}" for row in of_set)],
            ["publisher feeds", *(f"{row['publisher_feeds']:,}" for row in of_set)],
            ["it must feed at least", *(_certificate(row) for row in of_set)],
            ["CPU seconds", *(number(row["solve_cpu_s"]) for row in of_set)],
            ["at capacity, % of views that feed others", *(number(row["full_share"]) for row in of_set)],
        ]
        capacity = _published(said["publisher_capacity"], place)
        about = (
            f"The publisher may feed {of_set[0]['publisher_capacity']:,} (published: {number(capacity)}), 1.2 times the views"
            f" that no other can feed. Where that is impossible, the least it must feed is given, and the plan is for the"
            f" least that was found. Seconds, published: {said['seconds']}."
        )
        text.append(section(f"Table 3: plans of least use, {name}", about, head, lines))
    return "".join(text)


def _weights(rows: Rows, said: Config) -> str:
    head = ["weights", "use change, %", "latency change, %"]
    lines = [[row["weights"], f"{row['use_increase']:+.2f}", f"{-row['reduction']:+.1f}"] for row in rows]
    about = f"What latency passes do without slack, by what counts. Published, without slack: {said['same_capacity']}% less."
    return section("Weights of use and latency", about, head, lines)


def _partial(rows: Rows, said: Config) -> str:
    names = ("feeds", "feeds_in_part", "steps", "bytes", "use")
    head = ["publisher", "feeds", "of them in part", "steps it matches", "bytes it sends per document", "use"]
    lines = [
        ["with partial rewritings" if row["partial"] else "without", *(f"{row[name]:,.0f}" for name in names)]
        for row in rows
    ]
    return section("Partial rewritings", "Proposed, not measured, in the paper.", head, lines)


def _ratio(value: float | None, other: float | None) -> str:
    return "" if value is None or other is None else f"{value / other:.4f}"


def _certificate(row: Any) -> str:
    if "needed" not in row:
        return "within its capacity"
    return f"{row['needed']:,}" + ("" if row["is_proven"] else ", not proven")


def _latency(rows: Rows, said: Config) -> str:
    head = ["set, capacity", "passes", "CPU seconds", "latency, hops", "latency change, %", "use change, %"]
    lines = [
        [
            f"{row['set']}, {row['capacity']}",
            str(row["passes"]),
            f"{row['seconds']:.2f}",
            f"{row['latency']:,.0f}",
            f"{row['latency_share'] - 100:+.1f}",
            f"{row['use_increase']:+.2f}",
        ]
        for row in rows
    ]
    about = (
        f"Published: {said['distinct_reduction']}% less latency of the first set, {said['repeated_reduction']}% of the second,"
        f" within {said['seconds']} s, for {said['use_increase']}% more use, with 1.5 times the capacities."
    )
    return section("Figures 6 and 7: latency, pass by pass", about, head, lines)


def _levels(rows: Rows, said: Config) -> str:
    most = max(max(len(row[plan]) for plan in _PLANS) for row in rows)
    head = ["set, capacity, plan", *(str(level) for level in range(1, most + 1))]
    lines = [
        [f"{row['set']}, {row['capacity']}, {name}", *(f"{count:,}" for count in row[plan])]
        + [""] * (most - len(row[plan]))
        for row in rows
        for plan, name in _PLANS.items()
    ]
    first = rows[0]
    deep = 100 * sum(first["less_latency"][5:]) / sum(first["less_latency"])
    about = (
        f"Published, first set, capacity 30: {said['least_use']} levels, and {said['less_latency']} with less latency, where"
        f" {said['deep_share']}% of views are on level 6 or above. Here, first line: {len(first['least_use'])} and"
        f" {len(first['less_latency'])} levels, {deep:.2f}% on level 6 or above."
    )
    return section("Figure 8: views per level", about, head, lines)


def _wan(rows: Rows, said: Config) -> str:
    first = rows[0]
    about = (
        f"Published: {said['latency_mean_s']} s of mean view latency; with capacity 5 and least use from {said['first_s']}"
        f" to {said['last_s']} s, {said['reduction']}% less with less latency; without limit up to"
        f" {said['unlimited_last_s']} s on {said['unlimited_levels']} levels; a document delivered in"
        f" {said['delivery']} s; the publisher fed {said['publisher_feeds']} views."
    )
    about += (
        f" {first['unfed']:,} distinct views can be fed by no other. {first['matched_share']:.1f}% of pairs of a view and a"
        f" document match. A node takes {1e6 * first['node_each']:.0f} us and {1e6 * first['node_per_id']:.3f} us per id of"
        f" its inputs. By the nodes themselves the first documents take {first['least_use_latency_by_nodes_s']:.3f} s on"
        f" average, by the table {first['least_use_latency_by_table_s']:.3f} s."
    )
    head = ["", *(f"capacity {row['capacity']}" for row in rows)]
    lines = [
        ["publisher feeds", *(f"{row['publisher_feeds']:,}" for row in rows)],
        ["it must feed at least", *(_certificate(row) for row in rows)],
        ["use change, %", *(f"{row['use_increase']:+.2f}" for row in rows)],
        ["publisher matches a document, CPU ms", *(f"{row['matching_ms']:.1f}" for row in rows)],
        ["the same for all different views", *(f"{row['matching_all_ms']:.1f}" for row in rows)],
    ]
    for plan, name in _PLANS.items():
        lines.append([f"levels, {name}", *(str(len(row[f"{plan}_levels"])) for row in rows)])
    for what, label in (("latency", "view latency"), ("delivery", "document delivery")):
        for plan, name in _PLANS.items():
            for kind, word in (("min", "least"), ("mean", "mean"), ("max", "most")):
                cells = [f"{row[f'{plan}_{what}_{kind}_s']:.3f}" for row in rows]
                lines.append([f"{label}, {name}, {word}, s", *cells])
    for plan, name in _PLANS.items():
        lines.append([f"MB per document, {name}", *(number(row[f"{plan}_bytes_per_document"] / 1e6) for row in rows)])
    return section("Figures 9 to 11: a wide-area network", about, head, lines)


_SECTIONS: dict[str, Callable[[Rows, Config], str]] = {
    "sets": _sets,
    "plans": _plans,
    "latency": _latency,
    "levels": _levels,
    "weights": _weights,
    "partial": _partial,
    "wan": _wan,
}
