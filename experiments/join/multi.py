"""Joins of up to four tables: by which neighbour a table is filtered (figure 13), and a star (figure 14)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

import numpy as np

from experiments.join.crowd import Crowd
from experiments.join.outcome import BEST, Rows, Say, Totals, per_change, totals
from tidings.bench.join_multi_data import MultiData
from tidings.families.base import Server
from tidings.families.join.decomposition import Estimate, Sample, Traffic, cheapest, combinations_of
from tidings.families.join.semijoin import SemijoinServer
from tidings.model.change import Op
from tidings.workloads.join_draws import widths
from tidings.workloads.join_multi_cases import GeneralCase, Mix, StarCase
from tidings.workloads.join_multi_scene import SIGNATURES, S
from tidings.workloads.join_tables import GENERAL, STAR

_TOGETHER = 50
_TABLES = "RSTU"
_SAMPLE = 64
_PAYLOAD = 100
AUTO = "auto"
_PREFIXES = {Op.INSERT: "", Op.DELETE: "delete_", Op.UPDATE: "update_"}
Kinds = dict[Op, Totals]


class Play:
    """The changes of some data on servers, a server for each signature."""

    def __init__(self, data: MultiData) -> None:
        self._data = data
        self._crowds = [Crowd(data.space(number), data.points(number)) for number in range(len(SIGNATURES))]
        self._first_rows = [data.first_rows(table) for table in range(len(_TABLES))]

    def server(self, signature: int, strategy: str) -> Server:
        """Where it has a choice, it filters by the estimate from numbers; `auto` by that from a sample, and as it likes."""
        tables = SIGNATURES[signature]
        server = self._crowds[signature].server(strategy, [self._first_rows[table] for table in tables])
        if strategy == AUTO and isinstance(server, SemijoinServer):
            sample = self.estimates(server, tables)["sample"]
            choices = [combinations_of(around) for around in _neighbours(tables)]
            server.filters = [cheapest(sample, number, some) for number, some in enumerate(choices)]
        elif isinstance(server, SemijoinServer):
            filter_center(server, tables, self.chosen(server, tables)["numbers"])
        return server

    def estimates(self, server: SemijoinServer, tables: tuple[int, ...]) -> dict[str, Estimate]:
        """From numbers, as in the paper, and from what some subscriptions select."""
        changes = np.bincount(self._data.scene.steps.table, minlength=len(_TABLES))
        per_value = {
            (number, junction.other(number)): len(server.relations[number]) / junction.values
            for sides, junction in server.junctions.items()
            for number in sides
        }
        numbers = Traffic([float(changes[table]) for table in tables], per_value)
        some = server.audience.some(_SAMPLE)
        return {
            "numbers": numbers,
            "sample": Sample(server.space, numbers, server.relations, server.junctions, some),
        }

    def chosen(self, server: SemijoinServer, tables: tuple[int, ...]) -> dict[str, int]:
        """The table by which it is cheapest to filter S, by each estimate."""
        center, estimates = tables.index(S), self.estimates(server, tables).items()
        around = [(one,) for one in _neighbours(tables)[center]]
        return {name: tables[cheapest(estimate, center, around)[0]] for name, estimate in estimates}

    def play(self, signature: int, server: Server) -> Kinds:
        tables, crowd, scene = SIGNATURES[signature], self._crowds[signature], self._data.scene
        found: Kinds = {op: Totals() for op in _PREFIXES}
        for start in range(0, scene.changes, _TOGETHER):
            for table, op, changes in self._data.changes(start, min(scene.changes, start + _TOGETHER)):
                if table in tables:
                    found[op].update(totals(server.change(changes), tables.index(table), crowd))
        return found

    def all(self, strategy: str) -> Kinds:
        """All signatures together."""
        return together([self.play(number, self.server(number, strategy)) for number in range(len(SIGNATURES))])

    def figures(self, found: Kinds) -> dict[str, float]:
        """Per insertion, with a prefix per deletion and per update, where there are such."""
        figures: dict[str, float] = {}
        for op, prefix in _PREFIXES.items():
            changes = int((self._data.scene.steps.op == op).sum())
            if changes:
                figures |= {f"{prefix}{name}": value for name, value in per_change(found[op], changes).items()}
        return figures


def together(parts: Iterable[Kinds]) -> Kinds:
    found: Kinds = {op: Totals() for op in _PREFIXES}
    for part in parts:
        for op, of_kind in part.items():
            found[op].update(of_kind)
    return found


def filter_center(server: SemijoinServer, tables: tuple[int, ...], by: int) -> None:
    """All tables but S have no neighbour but S."""
    server.filters = [(tables.index(by if table == S else S),) for table in tables]


def run_general(config: dict[str, Any], seed: int, say: Say) -> Rows:
    """All decompositions, of which some are drawn at random; those of least estimated cost; and fewer or no semijoins."""
    rows: Rows = []
    for width, center_width in config["widths"]:
        say(f"widths {width:,} and {center_width:,}")
        mix = Mix(width=widths(width), width_s=widths(center_width))
        case = GeneralCase(mix=mix).sized(config["rows"])
        scene = case.scene(seed=seed, subscriptions=config["subscriptions"], changes=config["changes"])
        play = Play(MultiData(GENERAL, scene))
        found: Rows = [{"strategy": name, **play.figures(play.all(name))} for name in ("rel-sel", AUTO)]
        found += _decompositions(play, config["decompositions"], seed, say)
        rows += [{"width": width, "center_width": center_width, **row} for row in found]
    return rows


def _decompositions(play: Play, drawn: int, seed: int, say: Say) -> Rows:
    found: dict[tuple[int, int], Kinds] = {}
    chosen: dict[str, list[int]] = {"numbers": [], "sample": []}
    costs: dict[str, float] = {}
    for signature, tables in enumerate(SIGNATURES):
        for by in _around(tables):
            say(f"{_name(tables)}, S by {_TABLES[by]}")
            server = play.server(signature, BEST)
            assert isinstance(server, SemijoinServer)
            if by == _around(tables)[0]:
                for name, best in play.chosen(server, tables).items():
                    chosen[name].append(best)
            if len(tables) == len(_TABLES):
                costs[f"cost_{_TABLES[by]}"] = play.estimates(server, tables)["numbers"].cost(S, (by,))
            filter_center(server, tables, by)
            found[signature, by] = play.play(signature, server)
    choices = list(product(*map(_around, SIGNATURES)))
    at_random = np.random.default_rng(seed).permutation(len(choices))[:drawn].tolist()
    return [
        {
            "strategy": BEST,
            "choice": ", ".join(f"{_name(SIGNATURES[i])} by {_TABLES[by]}" for i, by in enumerate(choice)),
            "is_drawn": number in at_random,
            **{f"is_best_by_{name}": list(choice) == best for name, best in chosen.items()},
            **play.figures(together(found[signature, by] for signature, by in enumerate(choice))),
            **costs,
        }
        for number, choice in enumerate(choices)
    ]


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


def run_star(config: dict[str, Any], seed: int, say: Say) -> Rows:
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
            rows.append(row | play.figures(play.all(strategy)))
    return rows
