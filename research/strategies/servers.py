"""How the region servers of each family are made, by the name of the strategy. The first of a family is its default."""

from __future__ import annotations

from research.strategies.loading import server

JOINS = (
    *(f"ref-sj:{skyline}" for skyline in ("clu", "clu+", "tup", "tup+", "sub", "min")),
    *("long-sj", "enum-sj", "rel-sel", "ref-j+", "ref-j", "enum-j"),
)
EPSILONS = (0.5, 0.25, 0.125)
"""Of `dense:EPS` and `sparse:EPS`."""
SKETCHES = (16, 256)
"""Of `sketch:RECTANGLES`."""
SERVERS = {
    "select": {
        "region": server("research.strategies.select.region_server", "region"),
        "entering": server("research.strategies.select.entering", "entering"),
        **{name: server("research.strategies.select.servers", name) for name in ("unicast", "scan")},
    },
    "drift": {
        "region": server("research.strategies.drift.region_server", "region"),
        "region:renewed": server("research.strategies.drift.renewed", "renewed"),
        **{name: server("research.strategies.drift.servers", name) for name in ("scan", "unicast", "relax")},
    },
    "topk": {
        "dense": server("research.strategies.topk.region_servers", "dense"),
        **{f"sketch:{count}": server("research.strategies.topk.servers", "sketch", count) for count in SKETCHES},
        **{name: server("research.strategies.topk.servers", "server", name) for name in ("sparse", "unicast", "relax")},
        **{
            f"{kind}:{eps}": server("research.strategies.topk.servers", "server", kind, eps)
            for kind in ("dense", "sparse")
            for eps in EPSILONS
        },
    },
    "join": {name: server("research.strategies.join.servers", "server", name) for name in ("auto", *JOINS)},
    "offers": {"region": server("research.strategies.offers.region_server", "region")},
}
"""Family -> name -> how its server is made."""
LOOSE = {"drift": {name: server("research.strategies.drift.relaxed", name) for name in ("relaxed", "choice")}}
"""The same of those that only `research.stages` can run: what they tell is not what the reference says, but defined by them."""
