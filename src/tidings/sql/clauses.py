"""Where a statement's clauses stand, for later stages that refuse a combination of them."""

from __future__ import annotations

from sqlglot.tokenizer_core import Token, TokenType

from tidings.model.catalog import Catalog
from tidings.sql.query import read_query
from tidings.sql.source import Place, place_at

ALTERNATIVES = (TokenType.OR, TokenType.NEQ, TokenType.NOT, TokenType.IS)
"""Tokens that can make a condition have several disjuncts, or test for null."""

_AFTER_FROM = (TokenType.WHERE, TokenType.ORDER_BY, TokenType.LIMIT)
_JOIN = (TokenType.JOIN, TokenType.INNER)


def place_of_clause(sql: str, catalog: Catalog, clause: str) -> Place:
    """Place of a clause, or of FROM if there is no such clause. Parses the text again, which only errors need."""
    query = read_query(sql, catalog)
    tokens = query.scope.source.tokens
    if clause == "movement" and query.movement is not None:
        return query.scope.source.place(query.movement.node)
    if clause == "order" and query.order is not None:
        return _place(sql, tokens, _first(tokens, (TokenType.ORDER_BY,), 0), len(tokens))
    start = _first(tokens, (TokenType.FROM,), 0)
    alternative = _first(tokens, ALTERNATIVES, start)
    if clause == "alternative" and alternative < len(tokens):
        return _place(sql, tokens, alternative, alternative + 1)
    end = _first(tokens, _AFTER_FROM, start)
    join = _first(tokens, _JOIN, start)
    if clause == "join" and query.joins:
        return _place(sql, tokens, join, end)
    return _place(sql, tokens, start, min(join, end))


def _first(tokens: list[Token], types: tuple[TokenType, ...], start: int) -> int:
    """Index of the first token of the types, or past the end."""
    return next((index for index in range(start, len(tokens)) if tokens[index].token_type in types), len(tokens))


def _place(sql: str, tokens: list[Token], first: int, end: int) -> Place:
    return place_at(sql, tokens[first].start, tokens[end - 1].end + 1)
