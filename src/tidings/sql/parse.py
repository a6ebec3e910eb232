"""SQL text to a syntax tree of one SELECT, in which every token is accounted for.

sqlglot reads far more SQL than subscriptions may use, and drops some of it silently. So after parsing, every token must
either be a name, literal or function of the tree, or one of the few keywords the compiler honours; anything else is
refused where it stands.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token, TokenType
from sqlglot.tokens import Tokenizer

from tidings.model.errors import SqlError
from tidings.sql.fingerprint import leading_dot_numbers
from tidings.sql.length import SQL_LENGTH_MAX, check_length
from tidings.sql.movements.silence import interval_starts
from tidings.sql.refusals import ALLOWED_TOKENS, CONDITIONS, FORM, refusal_of_token
from tidings.sql.source import Source, place_at

NESTING_MAX = 60


def parse_select(sql: str) -> tuple[Source, exp.Select]:
    """The one SELECT that the text holds; SqlError for anything else."""
    source = Source(sql, tokenize(sql))
    _check_statement(source)
    tree = _parse(source)
    _check_tokens(source, tree)
    if not isinstance(tree, exp.Select):
        raise source.error("only a plain SELECT can be a subscription", tree, FORM)
    return source, tree


def tokenize(sql: str, length_max: int = SQL_LENGTH_MAX) -> list[Token]:
    """Tokens with their offsets in `sql`; SqlError where the text cannot even be split."""
    check_length(sql, length_max)
    try:
        sql.encode()
    except UnicodeEncodeError as error:
        place = place_at(sql, error.start, error.end)
        raise SqlError(
            "the text is not valid Unicode", line=place.line, column=place.column, hint="remove the lone surrogate"
        ) from None
    text = sql
    # The tokenizer splits `.5` in two and the parser forgets where it stood; any number of that length will do, since
    # literals are always read from the original text.
    for start, end in leading_dot_numbers(sql):
        text = text[:start] + "1" * (end - start) + text[end:]
    try:
        return list(Tokenizer().tokenize(text))
    except Exception:  # whatever goes wrong inside the tokenizer is a fault of the text
        start = _unclosed(sql)
        place = place_at(sql, start, len(sql))
        raise SqlError(
            "the text cannot be split into tokens",
            construct=place.text,
            line=place.line,
            column=place.column,
            hint="close every quote and comment",
        ) from None


def _unclosed(sql: str) -> int:
    """Offset of the quote or comment that is never closed, as far as one can tell; 0 otherwise."""
    at = 0
    closers = {"'": "'", '"': '"', "/*": "*/", "--": "\n"}
    while at < len(sql):
        opener = sql[at] if sql[at] in closers else sql[at : at + 2]
        if opener in closers:
            end = sql.find(closers[opener], at + len(opener))
            if end < 0:
                return at
            at = end + len(closers[opener])
        else:
            at += 1
    return 0


def _check_statement(source: Source) -> None:
    """Refuse before parsing: no statement, another kind of statement, several statements, too deep nesting."""
    tokens = source.tokens
    if not tokens or all(token.token_type is TokenType.SEMICOLON for token in tokens):
        raise SqlError("there is no statement", hint=FORM)
    first = tokens[0]
    if first.token_type is not TokenType.SELECT:
        problem, hint = refusal_of_token(first) if first.token_type is TokenType.WITH else ("", "")
        raise source.error_at_token(problem or "only a SELECT can be a subscription", first, hint or FORM)
    depth = 0
    ended: Token | None = None
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            ended = token
        elif ended is not None:
            raise source.error_at_token("there is more than one statement", token, "send one SELECT at a time")
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        if depth > NESTING_MAX:
            raise source.error_at_token("the parentheses are nested too deep", token, f"the limit is {NESTING_MAX}")
    while tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()


def _parse(source: Source) -> exp.Expr:
    try:
        trees = Parser().parse(_readable(source), source.text)
    except ParseError as error:
        raise _syntax_error(source, error) from None
    except RecursionError:
        raise SqlError("the statement is nested too deep", hint="use fewer parentheses and operators") from None
    except Exception:  # a bug in the parser that this text brought out: the text is still what must change
        raise SqlError("the statement cannot be parsed", hint=FORM) from None
    tree = trees[0] if trees else None
    if tree is None or len(trees) != 1:
        raise SqlError("the statement cannot be parsed", hint=FORM)
    return tree


def _readable(source: Source) -> list[Token]:
    """Tokens as the parser takes them.

    The bare literal stands in place of every interval: the parser would lose its text and place. OVERLAPS is a name like
    any other, since it is called as a function here.
    """
    around = {token.start for start, words in source.intervals.items() for token in words if token.start != start}
    return [
        Token(TokenType.VAR, token.text, token.line, token.col, token.start, token.end)
        if token.token_type is TokenType.OVERLAPS
        else token
        for token in source.tokens
        if token.start not in around
    ]


def _syntax_error(source: Source, error: ParseError) -> SqlError:
    details = error.errors[0] if error.errors else {}
    line, column, text = details.get("line") or 0, details.get("col") or 0, details.get("highlight") or ""
    # A keyword we refuse is a better explanation than the confusion it caused the parser.
    for token in source.tokens:
        if token.token_type in (TokenType.PLACEHOLDER, TokenType.PARAMETER):
            return source.error_at_token(*_with_token(token))
    # sqlglot gives the column of the token's last character.
    return SqlError(
        "this is not valid SQL", construct=text, line=line, column=max(1, column - len(text) + 1), hint=FORM
    )


def _with_token(token: Token) -> tuple[str, Token, str]:
    problem, hint = refusal_of_token(token)
    return problem, token, hint


def _check_tokens(source: Source, tree: exp.Expr) -> None:
    """Refuse every token that neither appears in the tree nor is a keyword the compiler honours."""
    claimed = {
        node._meta["start"]
        for node in tree.walk()
        if node._meta and "start" in node._meta and isinstance(node, exp.Identifier | exp.Literal | exp.Star | exp.Func)
    }
    claimed |= interval_starts(source, tree)
    for token in source.tokens:
        if token.start not in claimed and token.token_type not in ALLOWED_TOKENS:
            raise source.error_at_token(*_with_token(token))
    ors = [token for token in source.tokens if token.token_type is TokenType.OR]
    if len(ors) != sum(1 for _ in tree.find_all(exp.Or)):
        raise source.error_at_token("OR is not supported here", ors[-1], CONDITIONS)
