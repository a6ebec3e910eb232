"""`catalog.sql` to a Catalog: CREATE TABLE and ALTER TABLE .. ADD COLUMN statements, read token by token.

The grammar is small, and everything accepted must have an effect, so it is parsed by hand: an unexpected token is refused with
a hint at what would work.
"""

from __future__ import annotations

from typing import NoReturn

from sqlglot.tokenizer_core import Token, TokenType

from tidings.model.catalog import Catalog, Column, ConstraintOptions, Table
from tidings.model.errors import CatalogError, SqlError
from tidings.model.types import ColumnType
from tidings.sql.catalog.words import HINTS, KEY_TYPES, SIZED, TYPES
from tidings.sql.parse import tokenize
from tidings.sql.source import place_at

CATALOG_LENGTH_MAX = 4 * 1024 * 1024
FORM = "write CREATE TABLE name (column TYPE PRIMARY KEY, column TYPE, ..);"


def parse_catalog(text: str) -> Catalog:
    """The tables that the text creates. Raises CatalogError, and no other exception, if the text is not supported."""
    try:
        tokens = tokenize(text, CATALOG_LENGTH_MAX)
    except SqlError as error:
        raise CatalogError(str(error)) from None
    reader = _Reader(text, tokens)
    tables: list[Table] = []
    while reader.skip_semicolons():
        at = reader.position
        if reader.word() in ("ALTER", "ALTER TABLE"):
            reader.added_column(tables)
            continue
        table = reader.table()
        if any(table.name.lower() == other.name.lower() for other in tables):
            reader.position = at + 2
            reader.fail(f"table {table.name!r} is created twice", "give each table its own name")
        tables.append(table)
    if not tables:
        raise CatalogError(f"the catalog has no tables; {FORM}")
    return Catalog(tuple(tables))


class _Column:
    """A column definition while its table is still being read."""

    def __init__(self, name: str, type: ColumnType, position: int) -> None:
        self.name = name
        self.type = type
        self.position = position
        self.not_null_position = -1


class _Reader:
    """Walks over the tokens; `position` is the next one."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self.text = text
        self.tokens = tokens
        self.position = 0

    def fail(self, problem: str, hint: str) -> NoReturn:
        """Refuse the token at the current position."""
        if self.position < len(self.tokens):
            token = self.tokens[self.position]
            place = place_at(self.text, token.start, token.end + 1)
            problem = f"{problem} near {place.text!r}"
        else:
            place = place_at(self.text, len(self.text), len(self.text))
            problem = f"{problem} at the end of the text"
        raise CatalogError(f"{problem} at line {place.line}, column {place.column}; {hint}")

    def word(self) -> str:
        """The next token's text in capitals, with single spaces; empty for quoted text and at the end."""
        if self.position >= len(self.tokens):
            return ""
        token = self.tokens[self.position]
        if token.token_type in (TokenType.IDENTIFIER, TokenType.STRING):
            return ""
        return " ".join(token.text.upper().split())

    def accept(self, word: str) -> bool:
        if self.word() != word:
            return False
        self.position += 1
        return True

    def expect(self, word: str, hint: str = FORM) -> None:
        if not self.accept(word):
            self.unexpected(f"{word} is expected", hint)

    def unexpected(self, problem: str, hint: str) -> NoReturn:
        """Refuses the next token: with the advice on it in `words`, if there is any, else with this problem and hint."""
        known = HINTS.get(self.word())
        if known is not None:
            self.fail(f"{self.word()} is not supported", known)
        self.fail(problem, hint)

    def skip_semicolons(self) -> bool:
        """True when a statement follows."""
        while self.accept(";"):
            pass
        return self.position < len(self.tokens)

    def name(self, what: str) -> str:
        """An identifier, quoted or not."""
        token = self.tokens[self.position] if self.position < len(self.tokens) else None
        if token is None or not _is_name(token):
            self.fail(f"the name of a {what} is expected", FORM)
        self.position += 1
        return token.text

    def table(self) -> Table:
        self.expect("CREATE")
        self.expect("TABLE")
        at = self.position
        name = self.name("table")
        if self.word() == "NOT":
            self._fail_at(at, "IF NOT EXISTS is not supported", FORM)
        if self.word() == ".":
            self.fail("schemas are not supported", "name the table alone")
        self.expect("(")
        columns: list[_Column] = []
        keys: list[tuple[int, tuple[str, ...]]] = []
        while True:
            if self.word() in ("PRIMARY KEY", "PRIMARY"):
                keys.append((self.position, self._key_list()))
            else:
                self._column(columns, keys)
            if not self.accept(","):
                break
        self.expect(")")
        options = self._options(columns)
        if self.position < len(self.tokens) and self.word() != ";":
            self.unexpected("; is expected after a table", FORM)
        end = self.position
        key = self._check(name, at, columns, keys, has_constraints=options is not None)
        self.position = end
        declared = tuple(Column(column.name, column.type) for column in columns)
        return Table(name, declared, key) if options is None else Table.of_constraints(name, declared, options)

    def added_column(self, tables: list[Table]) -> None:
        """Reads ALTER TABLE name ADD COLUMN column TYPE, and puts the table with the new column in place of the one before."""
        usage = "write ALTER TABLE name ADD COLUMN column TYPE;"
        if not self.accept("ALTER TABLE"):
            self.expect("ALTER", usage)
            self.expect("TABLE", usage)
        at = self.position
        name = self.name("table")
        place = next((i for i, table in enumerate(tables) if table.name.lower() == name.lower()), None)
        if place is None:
            self._fail_at(at, f"there is no table {name!r} before this", usage)
        table = tables[place]
        if table.has_constraints:
            self._fail_at(at, f"table {name!r} holds constraints, to which no column can be added", usage)
        if not self.accept("ADD COLUMN"):
            self.expect("ADD", usage)
            self.accept("COLUMN")
        at = self.position
        column = self.name("column")
        if any(column.lower() == other.lower() for other in table.column_names):
            self._fail_at(at, f"column {column!r} is there already", "give each column its own name")
        type = self._type()
        if type.is_geometric:
            self._fail_at(
                at, f"column {column!r} is {type.value}", "geometric columns need WITH (rows = 'constraints')"
            )
        if self.position < len(self.tokens) and self.word() != ";":
            self.unexpected("; is expected after a column that is added", usage)
        columns = (*table.columns, Column(column, type, is_added=True))
        tables[place] = Table(table.name, columns, table.key, table.rows)

    def _primary_key(self) -> None:
        if not self.accept("PRIMARY KEY"):
            self.expect("PRIMARY")
            self.expect("KEY")

    def _key_list(self) -> tuple[str, ...]:
        self._primary_key()
        self.expect("(", "write PRIMARY KEY (column, ..)")
        names = [self.name("key column")]
        while self.accept(","):
            names.append(self.name("key column"))
        self.expect(")", "write PRIMARY KEY (column, ..)")
        return tuple(names)

    def _column(self, columns: list[_Column], keys: list[tuple[int, tuple[str, ...]]]) -> None:
        at = self.position
        if self.word() in HINTS and not self._is_type(at + 1):
            self.unexpected("", "")
        name = self.name("column")
        if any(name.lower() == other.name.lower() for other in columns):
            self.position = at
            self.fail(f"column {name!r} is defined twice", "give each column its own name")
        column = _Column(name, self._type(), at)
        columns.append(column)
        while self.word() not in (",", ")"):
            if self.word() in ("PRIMARY KEY", "PRIMARY"):
                keys.append((self.position, (name,)))
                self._primary_key()
            elif self.word() == "NOT":
                column.not_null_position = self.position
                self.position += 1
                self.expect("NULL")
            else:
                self.unexpected(", or ) is expected after a column", FORM)

    def _is_type(self, position: int) -> bool:
        """Whether there is a type at the position, so that the word before it is the name of a column."""
        return position < len(self.tokens) and " ".join(self.tokens[position].text.upper().split()) in TYPES

    def _type(self) -> ColumnType:
        word = self.word()
        found = TYPES.get(word)
        if found is None:
            self.fail("unknown type", f"use {', '.join(type.value for type in ColumnType)}")
        self.position += 1
        if word == "DOUBLE":
            self.accept("PRECISION")
        if word == "CHARACTER":
            self.accept("VARYING")
        if word in SIZED and self.accept("("):
            self._size()
            if self.accept(","):
                self._size()
            self.expect(")", f"write {found.value}")
        if word == "TIMESTAMP" and (self.accept("WITH") or self.accept("WITHOUT")):
            self.expect("TIME", "write TIMESTAMP")
            self.expect("ZONE", "write TIMESTAMP")
        return found

    def _size(self) -> None:
        """A number, which is passed over."""
        if self.position >= len(self.tokens) or self.tokens[self.position].token_type is not TokenType.NUMBER:
            self.fail("a length is expected", "leave it out")
        self.position += 1

    def _options(self, columns: list[_Column]) -> ConstraintOptions | None:
        """`WITH (rows = 'constraints', matching = .., auction = ..)`; None for a table of plain rows."""
        at = self.position
        if not self.accept("WITH"):
            return None
        usage = (
            "options are WITH (rows = 'constraints'), and with it matching = 'classic', keep = 'no'"
            " and auction = 'column DESC' or 'column ASC'"
        )
        self.expect("(", usage)
        given: dict[str, tuple[int, str]] = {}
        while True:
            name = self.word().lower()
            if name not in ("rows", "matching", "keep", "auction"):
                self.unexpected("an option is expected", usage)
            if name in given:
                self.fail(f"option {name} is given twice", usage)
            self.position += 1
            self.expect("=", usage)
            given[name] = (self.position, self._text(usage))
            if not self.accept(","):
                break
        self.expect(")", usage)
        end = self.position
        for name, allowed, problem in (
            ("rows", ("constraints",), "unknown kind of rows"),
            ("matching", ("symmetric", "classic"), "unknown matching"),
            ("keep", ("yes", "no"), "publications are kept or not"),
        ):
            if name in given and given[name][1] not in allowed:
                self._fail_at(given[name][0], problem, usage)
        if "rows" not in given:
            self._fail_at(at, "the options are for tables of constraints", usage)
        is_kept = given.get("keep", (0, ""))[1] != "no"
        if "auction" in given and not is_kept:
            self._fail_at(given["keep"][0], "lots of an auction are kept until it ends", "leave out keep = 'no'")
        auction = self._auction(*given["auction"], columns, usage) if "auction" in given else None
        self.position = end
        return ConstraintOptions(given.get("matching", (0, ""))[1] == "classic", auction, is_kept)

    def _text(self, usage: str) -> str:
        """A text in single quotes."""
        token = self.tokens[self.position] if self.position < len(self.tokens) else None
        if token is None or token.token_type is not TokenType.STRING:
            self.fail("a text in single quotes is expected", usage)
        self.position += 1
        return token.text

    def _auction(self, at: int, text: str, columns: list[_Column], usage: str) -> tuple[str, bool]:
        """(attribute, whether the highest bid wins) of the option `auction`."""
        name, _, direction = text.partition(" ")
        found = [column for column in columns if column.name.lower() == name.lower()]
        if not found or direction.strip().upper() not in ("ASC", "DESC"):
            self._fail_at(at, "this is no attribute with a direction", usage)
        if found[0].type.is_lossy or not found[0].type.is_comparable:
            self._fail_at(at, f"bids cannot be compared by {found[0].type.value}", "bid by a number, a date or a time")
        return found[0].name, direction.strip().upper() == "DESC"

    def _check(
        self,
        name: str,
        at: int,
        columns: list[_Column],
        keys: list[tuple[int, tuple[str, ...]]],
        *,
        has_constraints: bool,
    ) -> tuple[str, ...]:
        """Checks a whole table. Returns the columns of its key."""
        if not columns:
            self._fail_at(at, f"table {name!r} has no columns", FORM)
        if has_constraints and keys:
            hint = "leave the key out: rows that are constraints are known by their id"
            self._fail_at(keys[0][0], "a table of constraints has no primary key", hint)
        if not has_constraints:
            if not keys:
                self._fail_at(at, f"table {name!r} has no primary key", "add PRIMARY KEY to a column")
            for column in columns:
                if column.type.is_geometric:
                    hint = "geometric columns need WITH (rows = 'constraints')"
                    self._fail_at(column.position, f"column {column.name!r} is {column.type.value}", hint)
        if len(keys) > 1:
            self._fail_at(keys[1][0], "there is more than one primary key", "write PRIMARY KEY (column, column) once")
        key = self._key_columns(columns, *keys[0]) if keys else ()
        for column in columns:
            if column.not_null_position >= 0 and column.name not in key:
                hint = "leave it out: only key columns are never null"
                self._fail_at(column.not_null_position, "NOT NULL is not supported", hint)
        return key

    def _key_columns(self, columns: list[_Column], at: int, names: tuple[str, ...]) -> tuple[str, ...]:
        """The columns of the key, spelled as in their definitions."""
        by_lower = {column.name.lower(): column for column in columns}
        key: list[str] = []
        for name in names:
            column = by_lower.get(name.lower())
            if column is None:
                known = ", ".join(column.name for column in columns)
                self._fail_at(at, f"the key names an unknown column {name!r}", f"known are {known}")
            if column.name in key:
                self._fail_at(at, f"the key names column {name!r} twice", "name each column once")
            if column.type not in KEY_TYPES:
                hint = f"use a column of type {', '.join(type.value for type in KEY_TYPES)}"
                self._fail_at(at, f"column {name!r} is {column.type.value} and cannot be in a key", hint)
            key.append(column.name)
        return tuple(key)

    def _fail_at(self, position: int, problem: str, hint: str) -> NoReturn:
        self.position = position
        self.fail(problem, hint)


def _is_name(token: Token) -> bool:
    if token.token_type is TokenType.IDENTIFIER:
        return bool(token.text)
    return token.token_type is not TokenType.STRING and token.text.isidentifier()
