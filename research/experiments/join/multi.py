"""Joins of up to four tables: by which neighbour a table is filtered (figure 13), and a star (figure 14)."""

from __future__ import annotations

import time
from itertools import product

import numpy as np

from research.bench.join.multi_data import MultiData
from research.experiments.join.outcome import BEST, Totals, per_change, totals, with_payload
from research.experiments.join.subscribers import Subscribers
from research.experiments.paper import Config, Rows, Say
from research.servers.protocols import Server
from research.strategies.join.semijoin.decomposition import Estimate, Sample, Traffic, cheapest
from research.strategies.join.semijoin.server import SemijoinServer
from research.workloads.join.draws import widths
from research.workloads.join.multi import SIGNATURES, GeneralCase, Mix, S, StarCase
from research.workloads.join.tables import GENERAL, STAR
from tidings.model.change import Op

_TOGETHER = 50
_TABLES = "RSTU"
_SAMPLE = 64
_PAYLOAD = 100
AUTO = "auto"
SLOW = ("enum-j", "long-sj")
"""Strategies that look at every affected subscription."""
_COMPARED = ("us", "messages", "description", "carried", "deliveries")
_PREFIXES = {Op.INSERT: "", Op.DELETE: "delete_", Op.UPDATE: "update_"}
Kinds = dict[Op, Totals]


class Play:
    """The changes of some data on servers that have the subscriptions of all signatures."""

    def __init__(self, data: MultiData) -> None:
        self.data = data
        self._center = data.schema.tables[S].name
        points = [data.points(number) for number in range(len(SIGNATURES))]
        self._forms = [batch.form for batch in points]
        self.sizes = [len(batch) for batch in points]
        """[signatures]: number of subscriptions."""
        self._people = Subscribers(data.catalog, points, self._center)
        self._first_rows = [data.first_rows(table) for table in range(len(_TABLES))]

    def server(self, strategy: str) -> Server:
        """`auto` filters by the estimate from a sample, and as it likes; others as they do at first."""
        server = self._people.server(strategy, self._first_rows)
        if strategy == AUTO and isinstance(server, SemijoinServer):
            for number, form in enumerate(self._forms):
                sample = self.estimates(server, number)["sample"]
                server.refilter(server.members[form], server.choose(form, sample))
        return server

    def filter_center(self, server: SemijoinServer, signature: int, by: int) -> None:
        """All tables but S have no neighbour but S."""
        tables = SIGNATURES[signature]
        filters = [(tables.index(by if table == S else S),) for table in tables]
        server.refilter(server.members[self._forms[signature]], list(filters))

    def estimates(self, server: SemijoinServer, signature: int) -> dict[str, Estimate]:
        """From numbers, as in the paper, and from what some subscriptions select."""
        form, tables = self._forms[signature], SIGNATURES[signature]
        graph = server.members[form].graph
        changes = np.bincount(self.data.scene.steps.table, minlength=len(_TABLES))
        per_value = {
            (number, edge.other(number)): len(graph.relations[number]) / edge.values
            for sides, edge in graph.edges.items()
            for number in sides
        }
        numbers = Traffic([float(changes[table]) for table in tables], per_value)
        some = server.subscribers.some(form, graph.space.dims, _SAMPLE)
        return {
            "numbers": numbers,
            "sample": Sample(graph, numbers, some),
        }

    def chosen(self, server: SemijoinServer, signature: int) -> dict[str, int]:
        """The table by which it is cheapest to filter S, by each estimate."""
        tables = SIGNATURES[signature]
        center, estimates = tables.index(S), self.estimates(server, signature).items()
        around = [(one,) for one in _neighbours(tables)[center]]
        return {name: tables[cheapest(estimate, center, around)[0]] for name, estimate in estimates}

    def costs(self, server: SemijoinServer, signature: int) -> dict[int, float]:
        """Table -> cost of filtering S by it, as estimated from numbers."""
        tables, estimate = SIGNATURES[signature], self.estimates(server, signature)["numbers"]
        return {by: estimate.cost(tables.index(S), (tables.index(by),)) for by in _around(tables)}

    def play(self, server: Server, stop: int, start: int = 0) -> Kinds:
        """What changes start .. stop - 1 come to."""
        found: Kinds = {op: Totals() for op in _PREFIXES}
        for first in range(start, stop, _TOGETHER):
            for table, op, changes in self.data.changes(first, min(stop, first + _TOGETHER)):
                begun = time.process_time()
                sent = list(server.change(changes))
                found[op].update({"us": 1e6 * (time.process_time() - begun)})
                found[op].update(totals(sent, self.data.schema.tables[table].name, self._people))
        return found

    def figures(self, found: Kinds, count: int, payload: int = 0) -> dict[str, float]:
        """Per insertion, with a prefix per deletion and per update, where there are such. payload: bytes more in rows of S."""
        figures: dict[str, float] = {}
        for op, prefix in _PREFIXES.items():
            changes = int((self.data.scene.steps.op[:count] == op).sum())
            if changes:
                means = per_change(with_payload(found[op], payload, "center_notes"), changes)
                figures |= {f"{prefix}{name}": value for name, value in means.items()}
        return figures

    def joined_rows(self) -> float:
        """Rows of the joins of all signatures that an inserted row is in, on average, by the rows at the start."""
        tables = self.data.scene.tables
        links = tables[S].links[: tables[S].start]
        outer = [table for table in range(len(_TABLES)) if table != S]
        counts = {
            table: np.bincount(tables[table].links[: tables[table].start, 0], minlength=int(links.max()) + 1)
            for table in outer
        }
        found = 0.0
        for signature in SIGNATURES:
            around = [table for table in signature if table != S]
            joined = np.prod([counts[table][links[:, outer.index(table)]] for table in around], axis=0).sum()
            # Each row of a table is in as many as any other, on average.
            found += sum(joined / tables[table].start for table in signature)
        return float(found) / len(_TABLES)


def run_general(config: Config, seed: int, say: Say) -> Rows:
    """All decompositions, of which some are drawn at random; those of least estimated cost; and fewer or no semijoins."""
    rows: Rows = []
    count = config["changes"]
    for width, center_width in config["widths"]:
        say(f"widths {width:,} and {center_width:,}")
        mix = Mix(width=widths(width), width_s=widths(center_width))
        case = GeneralCase(mix=mix).sized(config["rows"])
        play = Play(MultiData(GENERAL, case.scene(seed=seed, subscriptions=config["subscriptions"], changes=count)))
        found: Rows = [
            {"strategy": name, **play.figures(play.play(play.server(name), count), count)} for name in ("rel-sel", AUTO)
        ]
        found += _decompositions(play, config["decompositions"], count, seed, say)
        all_of_them = {"width": width, "center_width": center_width, "joined_rows": play.joined_rows()}
        rows += [all_of_them | row for row in found]
    return rows


def _decompositions(play: Play, drawn: int, count: int, seed: int, say: Say) -> Rows:
    server = play.server(BEST)
    assert isinstance(server, SemijoinServer)
    numbers = range(len(SIGNATURES))
    chosen = [play.chosen(server, number) for number in numbers]
    costs = [play.costs(server, number) for number in numbers]
    largest = max(numbers, key=lambda number: len(SIGNATURES[number]))
    of_largest = {f"cost_{_TABLES[by]}": cost for by, cost in costs[largest].items()}
    choices = list(product(*map(_around, SIGNATURES)))
    at_random = np.random.default_rng(seed).permutation(len(choices))[:drawn].tolist()
    rows = []
    for number, choice in enumerate(choices):
        name = ", ".join(f"{_name(SIGNATURES[i])} by {_TABLES[by]}" for i, by in enumerate(choice))
        say(f"S in {name}")
        server = play.server(BEST)
        assert isinstance(server, SemijoinServer)
        for signature, by in enumerate(choice):
            play.filter_center(server, signature, by)
        best = {
            f"is_best_by_{estimate}": list(choice) == [one[estimate] for one in chosen]
            for estimate in ("numbers", "sample")
        }
        best["is_drawn"] = number in at_random
        estimated = sum(play.sizes[i] * costs[i][by] for i, by in enumerate(choice))
        found = play.figures(play.play(server, count), count)
        rows.append({"strategy": BEST, "choice": name, "estimated": estimated, **best, **found, **of_largest})
    return rows


def _neighbours(tables: tuple[int, ...]) -> list[list[int]]:
    """Numbers of the sides that each side is joined to."""
    center = tables.index(S)
    return [
        [number for number in range(len(tables)) if number != center] if side == center else [center]
        for side in range(len(tables))
    ]


def _around(tables: tuple[int, ...]) -> list[int]:
    return [table for table in tables if table != S]


def _name(tables: tuple[int, ...]) -> str:
    return "".join(_TABLES[table] for table in tables)


def run_star(config: Config, seed: int, say: Say) -> Rows:
    """A fact table with payload and without, for narrow ranges and wide ones; insertions are of facts alone."""
    rows: Rows = []
    for width, fact_width in config["widths"]:
        mix = Mix(width=widths(width), width_s=widths(fact_width))
        case = StarCase(payloads=(_PAYLOAD, 0, _PAYLOAD, _PAYLOAD), mix=mix).sized(config["facts"])
        scene = case.scene(seed=seed, subscriptions=config["subscriptions"], changes=config["changes"])
        play = Play(MultiData(STAR, scene))
        for strategy in config["strategies"]:
            say(f"widths {width:,} and {fact_width:,}, {strategy}")
            server, few = play.server(strategy), config["slow"]
            found, count = play.play(server, few), few
            firsts = [play.figures(found, few, payload) for payload in config["fact_payloads"]]
            if strategy not in SLOW:
                count = config["changes"]
                rest = play.play(server, count, few)
                found = {op: found[op] + rest[op] for op in found}
            for payload, first in zip(config["fact_payloads"], firsts, strict=True):
                row = {"width": width, "fact_width": fact_width, "fact_payload": payload, "strategy": strategy}
                # What the first changes come to is to be compared with slow strategies.
                row |= {f"first_{name}": value for name, value in first.items() if name in _COMPARED}
                rows.append(row | play.figures(found, count, payload))
    return rows
