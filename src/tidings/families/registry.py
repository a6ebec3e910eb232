"""The installed families, which of them serves a query, and by which strategies. A new family is added in `_built_in`.

Families outside the package are named in the environment, `TIDINGS_FAMILIES=module:Class,..`, which every process of a
job inherits, or registered by hand in a single process. So are strategies: `TIDINGS_STRATEGIES=module:function,..` names
functions that call `add_strategy`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tidings.families.optional import REGION, SHARED, Disjunctive, Objecting, Publishing, Regional
from tidings.families.protocols import Family
from tidings.families.spec import Form, FormSpec
from tidings.model.catalog import Catalog, Table
from tidings.model.errors import SqlError, UsageError
from tidings.sql.compiler import Statement
from tidings.sql.shape import Shape

if TYPE_CHECKING:
    from tidings.families.evaluator import Evaluator, Store

MakeEvaluator = Callable[[Catalog, "Store"], "Evaluator"]
MakeSender = Callable[..., Any]
"""Makes a sender of its own, as `tidings.pipeline.edge.regions.RegionSender` is made."""

_extra: list[Family] = []
_named_strategies = [*filter(None, os.environ.get("TIDINGS_STRATEGIES", "").split(","))]
"""What is still to be called of the functions that the environment names."""
_added_evaluators: dict[tuple[str, str], MakeEvaluator] = {}
"""(family, strategy) -> how its evaluator is made, for strategies over shared rows that are not the family's own."""
_added_senders: dict[tuple[str, str], MakeSender] = {}
"""(family, strategy) -> the sender of strategies by which rows find gateways, of those that were added."""


@cache
def _built_in() -> tuple[Family, ...]:
    from tidings.families.drift import DriftFamily
    from tidings.families.join import JoinFamily
    from tidings.families.offers import OffersFamily
    from tidings.families.select import SelectFamily
    from tidings.families.topk import TopkFamily

    named = filter(None, os.environ.get("TIDINGS_FAMILIES", "").split(","))
    return (SelectFamily(), DriftFamily(), TopkFamily(), JoinFamily(), OffersFamily(), *map(_load, named))


def _load(name: str) -> Family:
    """The family `module:Class`."""
    found = _called("TIDINGS_FAMILIES", name)
    if not isinstance(found, Family):
        raise UsageError(f"TIDINGS_FAMILIES names {name!r}, which is not a Family")
    return found


def _add_named_strategies() -> None:
    # Each is forgotten first, since whoever adds strategies asks for families.
    while _named_strategies:
        _called("TIDINGS_STRATEGIES", _named_strategies.pop(0))


def _called(variable: str, name: str) -> Any:
    """What the function or class `module:name` gives, which an environment variable names."""
    module, _, attribute = name.partition(":")
    try:
        return getattr(import_module(module), attribute)()
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(f"{variable} names {name!r}, which cannot be loaded: {error}") from None


def families() -> tuple[Family, ...]:
    _add_named_strategies()
    return _known()


def _known() -> tuple[Family, ...]:
    return (*_built_in(), *_extra)


def register(family: Family) -> None:
    """Adds a family from outside the package, in this process. It takes precedence over the built-in ones in `classify`."""
    if family.name in {known.name for known in families()}:
        raise UsageError(f"there is a family {family.name!r} already")
    _extra.append(family)


def family(name: str) -> Family:
    _add_named_strategies()
    return _find(name)


def _find(name: str) -> Family:
    for known in _known():
        if known.name == name:
            return known
    raise UsageError(f"unknown family {name!r}; there are {', '.join(known.name for known in _known())}")


def family_of(form_key: str) -> tuple[Family, Form]:
    form = Form.from_key(form_key)
    return family(form.family), form


@lru_cache(maxsize=4096)
def spec_of(form_key: str, catalog: Catalog) -> FormSpec:
    """The description of a form, cached."""
    known, form = family_of(form_key)
    return known.spec(form, catalog)


def classify(statement: Statement, catalog: Catalog) -> Family:
    """The family that serves a query; SqlError, which names the unsupported construct, if there is none."""
    for known in (*_extra, *_built_in()):
        if known.claims(statement.shape, catalog):
            if not statement.shape.is_plain and not _serves_disjuncts(known, statement.shape):
                raise _no_disjuncts(known, statement)
            objection = known.objection(statement.shape, catalog) if isinstance(known, Objecting) else None
            if objection is not None:
                line, column, construct = statement.where(objection.clause)
                raise SqlError(objection.problem, construct=construct, line=line, column=column, hint=objection.hint)
            return known
    shape = statement.shape
    if shape.order is not None:
        problem, clause = "ORDER BY .. LIMIT over a join", "order"
    else:
        assert shape.movement is not None
        problem, clause = f"{shape.movement.kind} over a join", "movement"
    problem += ", which no installed family serves"
    line, column, construct = statement.where(clause)  # type: ignore[arg-type]
    served = "; ".join(f"{known.name}: {known.explanation.summary}" for known in families())
    raise SqlError(problem, construct=construct, line=line, column=column, hint=f"served are {served}")


def _serves_disjuncts(known: Family, shape: Shape) -> bool:
    return isinstance(known, Disjunctive) and known.serves_disjuncts(shape)


def _no_disjuncts(known: Family, statement: Statement) -> SqlError:
    line, column, construct = statement.where("alternative")
    shape = statement.shape
    asked = f"conditions of several disjuncts ({len(shape.disjuncts)} here)" if shape.disjuncts else "IS NULL"
    hint = (
        "give each column one interval or one list of values, as in NOT (x < 5), x IN (1, 2) or x IS NOT NULL;"
        " for the rest use several subscriptions"
    )
    problem = f"family {known.name!r} does not serve {asked}"
    return SqlError(problem, construct=construct, line=line, column=column, hint=hint)


def row_compiler(table: Table, catalog: Catalog) -> Callable[[str], bytes]:
    """Compiles the rows of a table of constraints (`Publishing.compiler`)."""
    for known in families():
        if isinstance(known, Publishing):
            return known.compiler(table, catalog)
    raise UsageError(f"no installed family serves table {table.name!r}, which holds constraints")


def add_strategy(
    family_name: str, strategy: str, *, evaluator: MakeEvaluator | None = None, sender: MakeSender | None = None
) -> None:
    """Adds a strategy to a family, in this process: its own `evaluator`, or a `sender` that says how rows find gateways.

    Users choose it by name as they do the family's own, and it must say the same, byte for byte.
    """
    if strategy in strategies_of(_find(family_name)):
        raise UsageError(f"family {family_name!r} has a strategy {strategy!r} already")
    if (evaluator is None) == (sender is None):
        raise UsageError(f"strategy {strategy!r} takes either an evaluator or a sender")
    if sender is not None:
        _added_senders[family_name, strategy] = sender
    elif evaluator is not None:
        _added_evaluators[family_name, strategy] = evaluator


def remove_strategy(family_name: str, strategy: str) -> None:
    """Takes back what `add_strategy` has added."""
    _added_senders.pop((family_name, strategy), None)
    _added_evaluators.pop((family_name, strategy), None)


def evaluator(known: Family, catalog: Catalog, store: Store, strategies: Mapping[str, str]) -> Evaluator:
    """Makes the evaluator of a family's subscriptions in one replica."""
    make = _added_evaluators.get((known.name, strategies.get(known.name, SHARED)), known.evaluator)
    return make(catalog, store)


def is_regional(form_key: str) -> bool:
    """Whether rows find subscriptions of a form by regions (`Regional`)."""
    known, form = family_of(form_key)
    return isinstance(known, Regional) and not form.is_net and known.is_regional(form)


def sending_strategies(strategies: Mapping[str, str]) -> dict[str, str]:
    """The choices that name a strategy by which rows find gateways."""
    return {name: strategy for name, strategy in strategies.items() if strategy not in _evaluations(family(name))}


def sender_of(strategies: Mapping[str, str]) -> MakeSender | None:
    """The sender that one of the strategies has added; None if there is none."""
    return next((_added_senders[each] for each in strategies.items() if each in _added_senders), None)


def _evaluations(known: Family) -> tuple[str, ...]:
    return (SHARED, *(strategy for name, strategy in _added_evaluators if name == known.name))


def strategies_of(known: Family) -> tuple[str, ...]:
    """Names of all strategies of a family, those over shared rows first."""
    added = (strategy for name, strategy in _added_senders if name == known.name)
    return (*_evaluations(known), *((REGION,) if isinstance(known, Regional) else ()), *added)


def parse_strategies(choices: list[str]) -> dict[str, str]:
    """`FAMILY=NAME` options as family -> strategy. UsageError if a name is unknown."""
    chosen: dict[str, str] = {}
    for choice in choices:
        name, equals, strategy = choice.partition("=")
        if not equals:
            raise UsageError(f"--strategy takes FAMILY=NAME, not {choice!r}")
        known = family(name)
        if strategy not in strategies_of(known):
            names = ", ".join(strategies_of(known))
            raise UsageError(f"family {name!r} has no strategy {strategy!r}; it has {names}")
        chosen[name] = strategy
    return chosen
