"""What subscriptions may not use: a problem and a hint for every construct we expect to meet."""

from __future__ import annotations

from sqlglot.tokenizer_core import Token, TokenType

FORM = "write SELECT columns FROM table [JOIN ..] WHERE column = value AND column BETWEEN low AND high"
CONDITIONS = (
    "compare a column with constants by =, <>, <, <=, >, >=, BETWEEN, IN, LIKE 'ab%' or IS NULL; join by AND, OR, NOT"
)
MOVEMENT_OR_SILENCE = "(moved(column) >= number OR silent_for(column) >= INTERVAL '1 hour')"
NULL_HINT = "write IS NULL or IS NOT NULL; all other comparisons with NULL are unknown, which selects no row"
PREFIX_HINT = "a pattern is a prefix and a final %, as in LIKE 'ab%'"

# Keywords and signs that the compiler honours.
ALLOWED_TOKENS = frozenset(
    {
        TokenType.SELECT,
        TokenType.FROM,
        TokenType.WHERE,
        TokenType.JOIN,
        TokenType.INNER,
        TokenType.ON,
        TokenType.USING,
        TokenType.ALIAS,
        TokenType.AND,
        TokenType.OR,
        TokenType.NOT,
        TokenType.BETWEEN,
        TokenType.IN,
        TokenType.IS,
        TokenType.NULL,
        TokenType.LIKE,
        TokenType.EQ,
        TokenType.NEQ,
        TokenType.LT,
        TokenType.LTE,
        TokenType.GT,
        TokenType.GTE,
        TokenType.L_PAREN,
        TokenType.R_PAREN,
        TokenType.COMMA,
        TokenType.DOT,
        TokenType.DASH,
        TokenType.PLUS,
        TokenType.TRUE,
        TokenType.FALSE,
        TokenType.DATE,
        TokenType.TIMESTAMP,
        TokenType.ORDER_BY,
        TokenType.ASC,
        TokenType.DESC,
        TokenType.LIMIT,
    }
)

_JOIN_HINT = "use an inner JOIN with USING (column) or ON a.x = b.y"
_AGGREGATE_HINT = "subscribe to the rows and aggregate them on your side"
_ONE_SELECT = "send one subscription for each SELECT"
_PARAMETER = ("parameters are not supported", "write the value itself")

_BY_TYPE: dict[TokenType, tuple[str, str]] = {
    TokenType.ILIKE: ("ILIKE is not supported", f"upper and lower case are told apart: {PREFIX_HINT}"),
    TokenType.RLIKE: ("pattern matching is not supported", PREFIX_HINT),
    TokenType.SIMILAR_TO: ("pattern matching is not supported", PREFIX_HINT),
    TokenType.ESCAPE: ("escapes in patterns are not supported", PREFIX_HINT),
    TokenType.WITH: ("common table expressions are not supported", "write one plain SELECT"),
    TokenType.DISTINCT: ("DISTINCT is not supported", "results are multisets; include the key to tell rows apart"),
    TokenType.GROUP_BY: ("GROUP BY is not supported", _AGGREGATE_HINT),
    TokenType.HAVING: ("HAVING is not supported", _AGGREGATE_HINT),
    TokenType.UNION: ("UNION is not supported", _ONE_SELECT),
    TokenType.INTERSECT: ("INTERSECT is not supported", "use AND in one SELECT"),
    TokenType.EXCEPT: ("EXCEPT is not supported", _ONE_SELECT),
    TokenType.OVER: ("window functions are not supported", "use ORDER BY column LIMIT k for a top-k"),
    TokenType.WINDOW: ("window functions are not supported", "use ORDER BY column LIMIT k for a top-k"),
    TokenType.QUALIFY: ("QUALIFY is not supported", "use ORDER BY column LIMIT k for a top-k"),
    TokenType.OFFSET: ("OFFSET is not supported", "use a larger LIMIT and skip the first rows on your side"),
    TokenType.FETCH: ("FETCH is not supported", "use LIMIT k"),
    TokenType.LEFT: ("outer joins are not supported", _JOIN_HINT),
    TokenType.RIGHT: ("outer joins are not supported", _JOIN_HINT),
    TokenType.FULL: ("outer joins are not supported", _JOIN_HINT),
    TokenType.OUTER: ("outer joins are not supported", _JOIN_HINT),
    TokenType.CROSS: ("cross joins are not supported", _JOIN_HINT),
    TokenType.NATURAL: ("natural joins are not supported", "name the columns: JOIN .. USING (column)"),
    TokenType.EXISTS: ("subqueries are not supported", "use a JOIN"),
    TokenType.INTERVAL: (
        "intervals are not supported here",
        "one stands after silent_for(column) >= only, as INTERVAL '1 hour'",
    ),
    TokenType.CASE: ("CASE is not supported", CONDITIONS),
    TokenType.PLACEHOLDER: _PARAMETER,
    TokenType.PARAMETER: _PARAMETER,
    TokenType.COLON: _PARAMETER,
    TokenType.STAR: ("arithmetic is not supported", "compare the column itself with a constant"),
    TokenType.SLASH: ("arithmetic is not supported", "compare the column itself with a constant"),
    TokenType.MOD: ("arithmetic is not supported", "compare the column itself with a constant"),
    TokenType.DCOLON: ("casts are not supported", "write DATE '2024-12-31' or TIMESTAMP '2024-12-31 23:59:59'"),
}

_BY_TEXT: dict[str, tuple[str, str]] = {
    "NULLS": ("the place of NULLs cannot be chosen", "leave out NULLS FIRST and NULLS LAST"),
    "FETCH": ("FETCH is not supported", "use LIMIT k"),
    "CAST": ("casts are not supported", "write DATE '2024-12-31' or TIMESTAMP '2024-12-31 23:59:59'"),
}


def refusal_of_token(token: Token) -> tuple[str, str]:
    """Problem and hint for a token the compiler does not honour."""
    found = _BY_TYPE.get(token.token_type) or _BY_TEXT.get(token.text.upper())
    if found is not None:
        return found
    return f"{token.text[:40]} is not supported here", FORM
