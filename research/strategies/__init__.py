"""Strategies to compare the product's with: the obvious ways, those of published work, and slower variants of our own.

    import research.strategies
    research.strategies.register()      # now `--strategy select=scan`, Engine(catalog, {"select": "scan"}) ..

Processes of a job register them by the environment: TIDINGS_STRATEGIES=research.strategies:register. All of them give the
same lines as the strategies of the product.
"""

from __future__ import annotations

from research.strategies.loading import evaluator, server
from tidings.families import registry

JOINS = (
    *(f"ref-sj:{skyline}" for skyline in ("clu", "clu+", "tup", "tup+", "sub", "min")),
    *("enum-sj", "rel-sel", "ref-j+", "ref-j", "enum-j"),
)
EPSILONS = (0.5, 0.25, 0.125)
"""Of `dense:EPS` and `sparse:EPS`."""
SERVERS = {
    "select": {name: server("research.strategies.select", name) for name in ("unicast", "scan")},
    "drift": {name: server("research.strategies.drift.servers", name) for name in ("scan", "unicast", "relax")},
    "topk": {
        **{name: server("research.strategies.topk.servers", "server", name) for name in ("sparse", "unicast", "relax")},
        **{
            f"{kind}:{eps}": server("research.strategies.topk.servers", "server", kind, eps)
            for kind in ("dense", "sparse")
            for eps in EPSILONS
        },
    },
    "join": {name: server("research.strategies.join.servers", "server", name) for name in JOINS},
}
"""Family -> name -> how its server is made."""


EVALUATORS = {"offers": {"relational": evaluator("research.strategies.offers.spark_evaluator", "relational")}}
"""The same for strategies over shared rows."""


def register() -> None:
    """Adds all of them to the families of this process, unless that has been done."""
    for family, servers in SERVERS.items():
        known = registry.strategies_of(registry.family(family))
        for name, make in servers.items():
            if name not in known:
                registry.add_strategy(family, name, make)
    for family, evaluators in EVALUATORS.items():
        known = registry.strategies_of(registry.family(family))
        for name, make_evaluator in evaluators.items():
            if name not in known:
                registry.add_strategy(family, name, evaluator=make_evaluator)


def unregister() -> None:
    names = [(family, name) for family, servers in SERVERS.items() for name in servers]
    names += [(family, name) for family, evaluators in EVALUATORS.items() for name in evaluators]
    for family, name in names:
        registry.remove_strategy(family, name)
