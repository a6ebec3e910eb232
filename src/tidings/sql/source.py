"""SQL text with its tokens: turns syntax-tree nodes into positions and refusals into errors that point at them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from tidings.model.errors import SqlError

_SHOWN_MAX = 80

# Constructs end at these tokens, so that `name` in `lower(name) = 'x'` grows to the whole predicate and no further.
_EDGES = frozenset(
    {
        TokenType.SELECT,
        TokenType.FROM,
        TokenType.WHERE,
        TokenType.JOIN,
        TokenType.INNER,
        TokenType.LEFT,
        TokenType.RIGHT,
        TokenType.FULL,
        TokenType.CROSS,
        TokenType.ON,
        TokenType.USING,
        TokenType.AND,
        TokenType.OR,
        TokenType.GROUP_BY,
        TokenType.HAVING,
        TokenType.ORDER_BY,
        TokenType.LIMIT,
        TokenType.OFFSET,
        TokenType.COMMA,
        TokenType.SEMICOLON,
    }
)


class Place(NamedTuple):
    """Where a construct stands: line and column from 1, and its text."""

    line: int
    column: int
    text: str


def place_at(text: str, start: int, end: int) -> Place:
    """The place of `text[start:end]`, long constructs being shortened for show."""
    shown = text[start:end]
    if len(shown) > _SHOWN_MAX:
        shown = shown[: _SHOWN_MAX - 3] + "..."
    return Place(text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start), shown)


class Source:
    """One statement's text and tokens."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self.text = text
        self.tokens = tokens

    @cached_property
    def _index_by_start(self) -> dict[int, int]:
        return {token.start: index for index, token in enumerate(self.tokens)}

    @cached_property
    def literal_spans(self) -> dict[int, tuple[int, int]]:
        """Start offset to span of every string and number token."""
        literals = (TokenType.STRING, TokenType.NUMBER)
        return {token.start: (token.start, token.end + 1) for token in self.tokens if token.token_type in literals}

    @cached_property
    def intervals(self) -> dict[int, tuple[Token, ...]]:
        """Start offset of the literal to the tokens of every `INTERVAL literal [unit]`."""
        found: dict[int, tuple[Token, ...]] = {}
        for index, token in enumerate(self.tokens[:-1]):
            literal = self.tokens[index + 1]
            if token.token_type is TokenType.INTERVAL and literal.token_type in (TokenType.STRING, TokenType.NUMBER):
                unit = self.tokens[index + 2 : index + 3]
                has_unit = bool(unit) and unit[0].token_type is TokenType.VAR
                found[literal.start] = (token, literal, *unit) if has_unit else (token, literal)
        return found

    def error(self, problem: str, node: exp.Expr, hint: str) -> SqlError:
        """An error that points at the whole construct around the node."""
        return self._error(problem, self.place(node), hint)

    def error_at_token(self, problem: str, token: Token, hint: str) -> SqlError:
        return self._error(problem, place_at(self.text, token.start, token.end + 1), hint)

    def error_at(self, problem: str, start: int, end: int, hint: str) -> SqlError:
        return self._error(problem, place_at(self.text, start, end), hint)

    def place(self, *nodes: exp.Expr) -> Place:
        """Where the nodes stand together, grown to whole constructs; the whole text if none has a position."""
        positions = [
            self._index_by_start[start] for node in nodes for start in _starts(node) if start in self._index_by_start
        ]
        if not positions:
            return place_at(self.text, 0, len(self.text))
        if len(nodes) == 1 and isinstance(nodes[0], exp.Identifier):  # a name is a construct of its own
            token = self.tokens[positions[0]]
            return place_at(self.text, token.start, token.end + 1)
        first, last = self._grow(min(positions), max(positions))
        return place_at(self.text, self.tokens[first].start, self.tokens[last].end + 1)

    def error_at_type(self, problem: str, types: tuple[TokenType, ...], hint: str) -> SqlError:
        """A refusal that points at the first token of the types: for nodes that have no position of their own."""
        token = next((token for token in self.tokens if token.token_type in types), self.tokens[0])
        return self.error_at_token(problem, token, hint)

    def error_between(
        self, problem: str, left: exp.Expr, right: exp.Expr, token_type: TokenType, hint: str
    ) -> SqlError:
        """A refusal that points at the token of the type which joins two nodes."""
        after, before = max(_starts(left), default=-1), min(_starts(right), default=len(self.text))
        for token in self.tokens:
            if token.token_type is token_type and after < token.start < before:
                return self.error_at_token(problem, token, hint)
        return self.error_at_type(problem, (token_type,), hint)

    def follows_comma(self, node: exp.Expr) -> bool:
        first = min((self._index_by_start[start] for start in _starts(node)), default=0)
        return first > 0 and self.tokens[first - 1].token_type is TokenType.COMMA

    def _grow(self, first: int, last: int) -> tuple[int, int]:
        """Extend a run of tokens to the next edge on both sides, keeping parentheses balanced."""
        opened, closed = _unbalanced(self.tokens[first : last + 1])
        depth = opened
        while last + 1 < len(self.tokens):
            token_type = self.tokens[last + 1].token_type
            if depth == 0 and (token_type in _EDGES or token_type is TokenType.R_PAREN):
                break
            depth += _step(token_type)
            last += 1
        depth = closed
        while first > 0:
            token_type = self.tokens[first - 1].token_type
            if depth == 0 and (token_type in _EDGES or token_type is TokenType.L_PAREN):
                break
            depth -= _step(token_type)
            first -= 1
        return first, last

    def _error(self, problem: str, place: Place, hint: str) -> SqlError:
        return SqlError(problem, construct=place.text, line=place.line, column=place.column, hint=hint)


def _starts(node: exp.Expr) -> Iterable[int]:
    for part in node.walk():
        # Reading `.meta` would create an empty dictionary on every node.
        start = part._meta.get("start") if part._meta else None
        if start is not None:
            yield start


def _step(token_type: TokenType) -> int:
    return (token_type is TokenType.L_PAREN) - (token_type is TokenType.R_PAREN)


def _unbalanced(tokens: list[Token]) -> tuple[int, int]:
    """How many parentheses are opened and not closed, and closed but not opened, within the tokens."""
    opened = closed = 0
    for token in tokens:
        if token.token_type is TokenType.L_PAREN:
            opened += 1
        elif token.token_type is TokenType.R_PAREN:
            if opened:
                opened -= 1
            else:
                closed += 1
    return opened, closed
