"""Joins of up to four tables: by which neighbour a table is filtered (figure 13), and a star (figure 14)."""

from __future__ import annotations

from itertools import product

import numpy as np

from research.bench.join.multi_data import MultiData
from research.experiments.join.outcome import BEST, Totals, per_change, totals
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
_PREFIXES = {Op.INSERT: "", Op.DELETE: "delete_", Op.UPDATE: "update_"}
Kinds = dict[Op, Totals]


class Play:
    """The changes of some data on servers that have the subscriptions of all signatures."""

    def __init__(self, data: MultiData) -> None:
        self.data = data
        self._center = data.schema.tables[S].name
        points = [data.points(number) for number in range(len(SIGNATURES))]
        self._forms = [batch.form for batch in points]
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

    def play(self, server: Server) -> Kinds:
        scene = self.data.scene
        found: Kinds = {op: Totals() for op in _PREFIXES}
        for start in range(0, scene.changes, _TOGETHER):
            for table, op, changes in self.data.changes(start, min(scene.changes, start + _TOGETHER)):
                name = self.data.schema.tables[table].name
                found[op].update(totals(server.change(changes), name, self._people))
        return found

    def figures(self, found: Kinds) -> dict[str, float]:
        """Per insertion, with a prefix per deletion and per update, where there are such."""
        figures: dict[str, float] = {}
        for op, prefix in _PREFIXES.items():
            changes = int((self.data.scene.steps.op == op).sum())
            if changes:
                figures |= {f"{prefix}{name}": value for name, value in per_change(found[op], changes).items()}
        return figures


def run_general(config: Config, seed: int, say: Say) -> Rows:
    """All decompositions, of which some are drawn at random; those of least estimated cost; and fewer or no semijoins."""
    rows: Rows = []
    for width, center_width in config["widths"]:
        say(f"widths {width:,} and {center_width:,}")
        mix = Mix(width=widths(width), width_s=widths(center_width))
        case = GeneralCase(mix=mix).sized(config["rows"])
        scene = case.scene(seed=seed, subscriptions=config["subscriptions"], changes=config["changes"])
        play = Play(MultiData(GENERAL, scene))
        found: Rows = [{"strategy": name, **play.figures(play.play(play.server(name)))} for name in ("rel-sel", AUTO)]
        found += _decompositions(play, config["decompositions"], seed, say)
        rows += [{"width": width, "center_width": center_width, **row} for row in found]
    return rows


def _decompositions(play: Play, drawn: int, seed: int, say: Say) -> Rows:
    server = play.server(BEST)
    assert isinstance(server, SemijoinServer)
    numbers = range(len(SIGNATURES))
    chosen = [play.chosen(server, number) for number in numbers]
    largest = max(numbers, key=lambda number: len(SIGNATURES[number]))
    estimate = play.estimates(server, largest)["numbers"]
    center = SIGNATURES[largest].index(S)
    costs = {
        f"cost_{_TABLES[by]}": estimate.cost(center, (SIGNATURES[largest].index(by),))
        for by in _around(SIGNATURES[largest])
    }
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
        found = play.figures(play.play(server))
        rows.append({"strategy": BEST, "choice": name, "is_drawn": number in at_random, **best, **found, **costs})
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
    for (width, fact_width), payload in product(config["widths"], config["fact_payloads"]):
        mix = Mix(width=widths(width), width_s=widths(fact_width))
        case = StarCase(payloads=(_PAYLOAD, payload, _PAYLOAD, _PAYLOAD), mix=mix).sized(config["facts"])
        scene = case.scene(seed=seed, subscriptions=config["subscriptions"], changes=config["changes"])
        play = Play(MultiData(STAR, scene))
        for strategy in config["strategies"]:
            say(f"widths {width:,} and {fact_width:,}, payload of facts {payload}, {strategy}")
            row = {"width": width, "fact_width": fact_width, "fact_payload": payload, "strategy": strategy}
            rows.append(row | play.figures(play.play(play.server(strategy))))
    return rows
