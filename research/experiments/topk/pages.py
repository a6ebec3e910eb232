"""Pictures and page of the top-k experiments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from research.experiments.page import Line, assembled, compared, number, opening, section
from research.experiments.paper import Config, Results, Rows
from research.experiments.plots import Axes, Panel, Picture, Style, curves, largest, ticks
from tidings.bench.report import shown

_STYLES = {
    "unicast": Style("unicast", "s:", "tab:orange"),
    "dense": Style("dense", "o-", "tab:blue"),
    "sparse": Style("sparse", "D-", "tab:green"),
    "dense_1": Style("dense, eps = 1", "o--", "tab:blue"),
    "sparse_1": Style("sparse, eps = 1", "D--", "tab:green"),
    "online": Style("online", "s:", "tab:orange"),
    "coalesced": Style("coalesced", "^--", "tab:gray"),
    "batch": Style("batch", "o-", "tab:blue"),
}
_WAYS = ("unicast", "dense", "sparse", "dense_1", "sparse_1")


def _by(x: str, what: str, label: str, *ways: str) -> Panel:
    """Curves over k or subscriptions, one for each way."""
    return curves(x, {f"{way}_{what}": _STYLES[way] for way in ways}, label, is_log_x=x == "subscriptions")


def _lookups(x: str) -> Panel:
    return _by(x, "lookups", "look-ups per change", *_WAYS[:3])


def _batched(what: str, label: str) -> Panel:
    return _by("k", what, label, "online", "coalesced", "batch")


def _draw_redundancy(axis: Axes, rows: Rows) -> None:
    for name in (key for key in rows[0] if key.startswith("eps_") and key.count("_") == 1):
        axis.plot(
            [row["k"] for row in rows], [row[name] for row in rows], "o-", label=f"eps = {name[4:]}", markersize=5
        )
    axis.set_ylim(bottom=0)
    ticks(axis, [row["k"] for row in rows], "k")
    axis.set_ylabel("redundancy of messages received")


def _eps_bytes(axis: Axes, rows: Rows) -> None:
    names = [key.removesuffix("_bytes") for key in rows[0] if key.endswith("_bytes")]
    for row in rows:
        axis.plot(
            [float(name[4:]) for name in names], [row[f"{name}_bytes"] for name in names], "o-", label=f"k = {row['k']}"
        )
    axis.set_yscale("log")
    axis.set_xlabel("eps")
    axis.set_ylabel("bytes from the server per change, sparse")


def _ratios(axis: Axes, rows: Rows) -> None:
    cases = list(dict.fromkeys(row["case"] for row in rows))
    sizes = list(dict.fromkeys(row["subscriptions"] for row in rows))
    height = 0.8 / len(sizes)
    for i, size in enumerate(sizes):
        found = {row["case"]: row["ratio"] for row in rows if row["subscriptions"] == size}
        places = [cases.index(case) + i * height for case in found]
        axis.barh(places, list(found.values()), height, label=f"{size:,}")
    axis.set_yticks([at + 0.4 - height / 2 for at in range(len(cases))], cases, fontsize=7)
    axis.invert_yaxis()
    axis.set_xlabel("boxes, sparse over dense")
    axis.legend(fontsize=8, title="subscriptions", loc="lower right")


def _draw_steps(axis: Axes, rows: Rows) -> None:
    for volatility, line in zip(dict.fromkeys(row["volatility"] for row in rows), ("-", "--"), strict=False):
        shown = [row for row in rows if row["volatility"] == volatility]
        for name in ("unicast", "dense"):
            values = [row[f"{name}_bytes"] for row in shown]
            label = f"{name}, c = {volatility:g}"
            axis.plot(
                [row["k"] for row in shown], values, "o" + line, color=_STYLES[name].colour, label=label, markersize=5
            )
    axis.set_yscale("log")
    ticks(axis, sorted({row["k"] for row in rows}), "k")
    axis.set_ylabel("bytes from the server per change")


def _draw_sketch(axis: Axes, rows: Rows) -> None:
    for case in dict.fromkeys(row["case"] for row in rows):
        shown = [row for row in rows if row["case"] == case and row["rectangles"]]
        axis.plot([row["bytes"] for row in shown], [row["boxes"] for row in shown], "o-", label=case, markersize=5)
    axis.set_xscale("log")
    axis.set_ylim(bottom=0)
    axis.set_xlabel("bytes of what is known of subscriptions")
    axis.set_ylabel("boxes per change")


_BYTES = "bytes from the server per change"
PICTURES = {
    "calls": Picture("Look-ups", [_lookups("k")]),
    "growth": Picture("Look-ups, k = 10", [_lookups("subscriptions")]),
    "redundancy": Picture("Regions rounded up, sparse", [_draw_redundancy, _eps_bytes]),
    "traffic": Picture(
        "Traffic from the server",
        [
            largest("subscriptions", _by("k", "bytes", _BYTES, *_WAYS)),
            largest("k", _by("subscriptions", "bytes", _BYTES, *_WAYS)),
            largest("k", _by("subscriptions", "max", "most bytes of one change", *_WAYS[:3])),
            largest("k", _by("subscriptions", "wire", "bytes per change on our wire", *_WAYS)),
        ],
    ),
    "batch": Picture(
        "A batch of changes of which only the outcome matters",
        [
            _batched("boxes", "messages sent (boxes)"),
            _batched("received", "messages received"),
            _batched("lookups", "look-ups"),
        ],
    ),
    "spread": Picture("Other distributions", [_ratios]),
    "steps": Picture("Scores that move a little at a time", [_draw_steps]),
    "sketch": Picture("Rectangles in place of subscriptions", [_draw_sketch]),
    "several": Picture(
        "Ranges of two columns", [_by("k", "boxes", "boxes per change", "dense", "sparse", "dense_1", "sparse_1")]
    ),
    "stocks": Picture(
        "Price-earnings ratios", [_by("k", "bytes", _BYTES, "unicast", "dense", "sparse", "sparse_1"), _lookups("k")]
    ),
}


def page(results: Results, published: Config, stamped: Config, pictures: list[str]) -> str:
    head = Path(__file__).parent / "head.md"
    said = {**{name: {} for name in _SECTIONS}, **published}
    return assembled(opening("Top-k", "topk", stamped), head, _SECTIONS, results, said, pictures)


def _by_k(rows: Rows) -> list[str]:
    return ["k", *(str(row["k"]) for row in rows)]


def _calls(rows: Rows, said: Config) -> str:
    about = "A run depends on a handful of its changes: the mean is of many runs, ± how far one of them is from it."
    lines = [
        Line("people affected", "affected_mean", "affected", "mean of runs"),
        Line("± of one run", "affected_sd"),
        Line("the run of the other tables", "affected"),
    ]
    first = section("Table I: people affected", about, _by_k(rows), compared(rows, said, "k", lines))
    lines = [
        Line("dense", "dense_lookups_mean", "dense_lookups", "mean of runs"),
        Line("± of one run", "dense_lookups_sd"),
        Line("sparse", "sparse_lookups", "sparse_lookups"),
        Line("boxes snapped", "sparse_snaps", "sparse_snaps"),
        Line("unicast", "unicast_lookups_mean", "unicast_lookups", "mean of runs"),
        Line("boxes, dense", "dense_boxes"),
        Line("boxes, sparse", "sparse_boxes"),
    ]
    about = (
        "The paper's sparse looks for a row whenever one falls, ours only where that concerns anybody: about half a look-up"
        f" less. Changes for which sparse has more boxes than dense: {sum(row['has_more_boxes'] for row in rows)}."
    )
    return first + section("Table III: look-ups by k", about, _by_k(rows), compared(rows, said, "k", lines))


def _growth(rows: Rows, said: Config) -> str:
    lines = [
        Line("sparse", "sparse_lookups", "sparse_lookups"),
        Line("boxes snapped", "sparse_snaps", "sparse_snaps"),
        Line("unicast", "unicast_lookups", "unicast_lookups"),
        Line("boxes, sparse", "sparse_boxes"),
    ]
    last = rows[-1]
    about = (
        f"Dense, whatever the subscriptions: {number(last['dense_lookups'])} look-ups (published {said['dense_lookups']}),"
        f" {number(last['dense_boxes'])} boxes (published {said['dense_boxes']})."
    )
    head = ["subscriptions", *(f"{row['subscriptions']:,}" for row in rows)]
    cells = compared(rows, said, "subscriptions", lines)
    return section("Table IV: look-ups by subscriptions, k = 10", about, head, cells)


def _redundancy(rows: Rows, said: Config) -> str:
    names = [key for key in rows[0] if key.startswith("eps_") and key.count("_") == 1]
    lines = [
        *(Line(f"eps = {name[4:]}", name, name) for name in names),
        Line("relax", "relax", "relax"),
        Line("relax, all messages", "relax_received"),
        *(Line(f"eps = {name[4:]}, all messages", f"{name}_received") for name in names),
        *(Line(f"eps = {name[4:]}, bytes", f"{name}_bytes") for name in names),
    ]
    about = (
        "Sparse. Messages received beyond those needed, as a share of the latter. The paper's numbers are those of messages"
        " with the changed row; there is more of it in all messages, also those with rows that take its place."
        " Bytes are those of figure 5b."
    )
    return section("Table II: redundancy", about, _by_k(rows), compared(rows, said, "k", lines))


def _traffic(rows: Rows, said: Config) -> str:
    del said
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
        tables.append(section(title, _ABOUT_TRAFFIC[suffix], head, lines))
    return "".join(tables)


_ABOUT_TRAFFIC = {
    "bytes": "Means over changes.",
    "max": "Unicast and dense over all changes, sparse over some.",
    "wire": "The paper has no such bytes.",
}


def _batch(rows: Rows, said: Config) -> str:
    del said
    ways = ("online", "coalesced", "batch")
    lines = [
        [
            f"{label}, {name.replace('sparse_', 'sparse, ')}",
            *(f"{row[f'{name}_{what}']:,}" if f"{name}_{what}" in row else "" for row in rows),
        ]
        for what, label in (
            ("boxes", "messages sent (boxes)"),
            ("received", "messages received"),
            ("lookups", "look-ups"),
        )
        for name in (*ways, *(f"sparse_{way}" for way in ways))
        if f"{name}_{what}" in rows[0]
    ]
    about = "Totals of the batch. With boxes around subscriptions (sparse) there are fewer of these."
    return section("Figure 9: a batch of which only the outcome matters", about, _by_k(rows), lines)


def _spread(rows: Rows, said: Config) -> str:
    del said
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
    lines = [[row["case"], f"{row['subscriptions']:,}", *(number(row[name]) for name in names)] for row in rows]
    more = sum(row["has_more_boxes"] for row in rows)
    about = f"Changes for which sparse has more boxes than dense: {more}."
    return section("Figure 8a: other distributions", about, head, lines)


def _steps(rows: Rows, said: Config) -> str:
    del said
    names = {"dense_bytes": "bytes, dense", "unicast_bytes": "bytes, unicast", "dense_lookups": "look-ups, dense"}
    head = ["c, k", *names.values()]
    lines = [
        [
            f"{row['volatility']:g}, {row['k']}",
            *(number(row[name]) for name in ("dense_bytes", "unicast_bytes", "dense_lookups")),
        ]
        for row in rows
    ]
    return section("Figure 8b: scores that move a little at a time", "c is how far.", head, lines)


def _stocks(rows: Rows, said: Config) -> str:
    lines = [
        Line("redundancy, sparse, eps = 1", "eps_1", "eps_1"),
        Line("redundancy, relax", "relax", "relax"),
        Line("the same of all messages, sparse, eps = 1", "eps_1_received"),
        Line("the same of all messages, relax", "relax_received"),
        Line("look-ups, sparse", "sparse_lookups", "sparse_lookups"),
        Line("boxes snapped, sparse", "sparse_snaps", "sparse_snaps"),
        Line("look-ups, unicast", "unicast_lookups", "unicast_lookups"),
        Line("bytes, unicast", "unicast_bytes"),
        Line("bytes, dense", "dense_bytes"),
        Line("bytes, sparse", "sparse_bytes"),
        Line("bytes, sparse, eps = 1", "sparse_1_bytes"),
    ]
    about = (
        "Not the paper's stocks, whose data we do not have: made-up companies, with prices that move as real ones did."
    )
    return section("Tables V and VI: price-earnings ratios", about, _by_k(rows), compared(rows, said, "k", lines))


def _sketch(rows: Rows, said: Config) -> str:
    del said
    names = {0: "none (dense)", rows[-1]["rectangles"]: "all subscriptions (sparse)"}
    lines = [
        [
            row["case"],
            names.get(row["rectangles"], f"{row['rectangles']:,}"),
            *map(number, (row["bytes"], row["boxes"])),
        ]
        for row in rows
    ]
    about = "Rectangles that cover all subscriptions, in their place. Whatever is known, a change reaches the same."
    return section(
        "Section III-B: a sketch of subscriptions", about, ["subscriptions", "rectangles", "bytes", "boxes"], lines
    )


def _several(rows: Rows, said: Config) -> str:
    del said
    names = {
        "one_dense": "dense, one column",
        "one_sparse": "sparse, one column",
        "dense": "dense",
        "sparse": "sparse",
        "dense_1": "dense, eps = 1",
        "sparse_1": "sparse, eps = 1",
    }
    lines = [[label, *(number(row[f"{name}_boxes"]) for row in rows)] for name, label in names.items()]
    return section("Section IV-C: boxes for ranges of two columns", "Exact ones reach the same.", _by_k(rows), lines)


_SECTIONS: dict[str, Callable[[Rows, Config], str]] = {
    "calls": _calls,
    "growth": _growth,
    "redundancy": _redundancy,
    "traffic": _traffic,
    "batch": _batch,
    "spread": _spread,
    "steps": _steps,
    "stocks": _stocks,
    "sketch": _sketch,
    "several": _several,
}
