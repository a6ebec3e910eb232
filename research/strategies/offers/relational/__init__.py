"""Matching as queries of a relational database: constraints as rows of typed tables, a query for each pair of operators.

The architecture of Tomasic, Garrod and Popendorf's paper on symmetric publish/subscribe. Predicates are reified: attribute,
operator and value of each comparison are columns of a row. Publications and subscriptions have tables of the same form:

    pub_master   (p_id, p_disjunct, count)                     a disjunct, and how many attributes it compares
    integer_pubs (p_id, p_disjunct, field, op, val, upper)     its comparisons of integers; likewise of other kinds of values

For each pair of operators in use a query finds the predicates on one attribute that can both hold; a disjunct of a publication
matches one of a subscription if all of its attributes are found (`queries.py`). `operators.py` knows the kinds of values and
the operators, `dialect.py` how databases differ, `reify.py` makes the rows.
"""

from research.strategies.offers.relational.dialect import POSTGRES, SPARK, SQLITE, Dialect
from research.strategies.offers.relational.operators import KINDS, Kind
from research.strategies.offers.relational.queries import (
    PUBLICATIONS,
    SUBSCRIPTIONS,
    Pair,
    Side,
    count_query,
    either_query,
    match_query,
    pair_queries,
    pair_query,
    pairs_in_use,
    used_operators_query,
)
from research.strategies.offers.relational.reify import Reified, reify

__all__ = [
    "KINDS",
    "POSTGRES",
    "PUBLICATIONS",
    "SPARK",
    "SQLITE",
    "SUBSCRIPTIONS",
    "Dialect",
    "Kind",
    "Pair",
    "Reified",
    "Side",
    "count_query",
    "either_query",
    "match_query",
    "pair_queries",
    "pair_query",
    "pairs_in_use",
    "reify",
    "used_operators_query",
]
