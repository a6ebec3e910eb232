"""Strategies to compare the product's with: the obvious ways, those of published work, and slower variants of our own.

    import research.strategies
    research.strategies.register()      # now `--strategy select=scan`, Engine(catalog, {"select": "scan"}) ..

Processes of a job register them by the environment: TIDINGS_STRATEGIES=research.strategies:register. All of them give the
same lines as the strategies of the product.
"""

from __future__ import annotations

from typing import Any

from research.strategies.loading import evaluator
from research.strategies.servers import EPSILONS, JOINS, SERVERS
from tidings.families import registry
from tidings.families.optional import REGION, Regional

__all__ = ["EPSILONS", "EVALUATORS", "JOINS", "SERVERS", "register", "unregister"]


EVALUATORS = {"offers": {"relational": evaluator("research.strategies.offers.spark_evaluator", "relational")}}
"""Family -> name -> how its evaluator is made, of strategies over shared rows."""


def register() -> None:
    """Adds all of them to the families of this process, unless that has been done."""
    for family, name in _added():
        if name not in registry.strategies_of(registry.family(family)):
            made = EVALUATORS.get(family, {}).get(name)
            if made is None:
                registry.add_strategy(family, name, sender=_sender)
            else:
                registry.add_strategy(family, name, evaluator=made)


def unregister() -> None:
    for family, name in _added():
        registry.remove_strategy(family, name)


def _added() -> list[tuple[str, str]]:
    """Families and the names of strategies that the product has not."""
    known = [(family, name) for named in (SERVERS, EVALUATORS) for family, some in named.items() for name in some]
    own = {(family.name, REGION) for family in registry.families() if isinstance(family, Regional)}
    return [each for each in known if each not in own]


def _sender(*arguments: Any, **options: Any) -> Any:
    from research.servers.sender import MessageSender

    return MessageSender(*arguments, **options)
