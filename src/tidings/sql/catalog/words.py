"""The words of the catalog's language: types by their names, and advice on what other databases allow here."""

from __future__ import annotations

from tidings.model.types import ColumnType

TYPES: dict[str, ColumnType] = {
    "BIGINT": ColumnType.BIGINT,
    "INT": ColumnType.INT,
    "INTEGER": ColumnType.INT,
    "DOUBLE": ColumnType.DOUBLE,
    "DOUBLE PRECISION": ColumnType.DOUBLE,
    "TEXT": ColumnType.TEXT,
    "VARCHAR": ColumnType.TEXT,
    "STRING": ColumnType.TEXT,
    "BOOLEAN": ColumnType.BOOLEAN,
    "DATE": ColumnType.DATE,
    "TIMESTAMP": ColumnType.TIMESTAMP,
    "BINARY": ColumnType.BINARY,
    "BLOB": ColumnType.BINARY,
    "BYTEA": ColumnType.BINARY,
    "POINT": ColumnType.POINT,
    "BOX": ColumnType.BOX,
    # What databases call values that are kept as one of the above.
    **dict.fromkeys(("SMALLINT", "TINYINT", "INT2", "INT4", "SERIAL"), ColumnType.INT),
    **dict.fromkeys(("INT8", "BIGSERIAL"), ColumnType.BIGINT),
    **dict.fromkeys(("REAL", "FLOAT", "FLOAT4", "FLOAT8", "DECIMAL", "NUMERIC"), ColumnType.DOUBLE),
    **dict.fromkeys(("CHAR", "CHARACTER", "CHARACTER VARYING", "BPCHAR", "UUID", "JSON", "JSONB"), ColumnType.TEXT),
    "BOOL": ColumnType.BOOLEAN,
    "VARBINARY": ColumnType.BINARY,
    **dict.fromkeys(("TIMESTAMPTZ", "DATETIME"), ColumnType.TIMESTAMP),
}
"""Types by the names that databases have for them. NUMERIC is kept as a DOUBLE, and moments in UTC."""
SIZED = {"VARCHAR", "CHAR", "CHARACTER", "CHARACTER VARYING", "BPCHAR", "DECIMAL", "NUMERIC", "FLOAT", "VARBINARY"}
SIZED |= {"TIMESTAMP", "TIMESTAMPTZ", "DATETIME"}
"""Those that may have a size in parentheses, which is passed over: values are kept whole."""

KEY_TYPES = (
    ColumnType.BIGINT,
    ColumnType.INT,
    ColumnType.TEXT,
    ColumnType.BOOLEAN,
    ColumnType.DATE,
    ColumnType.TIMESTAMP,
)

_KEY_ONLY = "the only constraint is PRIMARY KEY"

HINTS: dict[str, str] = {
    "DEFAULT": "leave it out: changes carry whole rows",
    "CHECK": _KEY_ONLY,
    "FOREIGN KEY": _KEY_ONLY,
    "FOREIGN": _KEY_ONLY,
    "REFERENCES": _KEY_ONLY,
    "UNIQUE": _KEY_ONLY,
    "CONSTRAINT": _KEY_ONLY,
    "AUTO_INCREMENT": "leave it out: changes carry their keys",
    "AUTOINCREMENT": "leave it out: changes carry their keys",
    "GENERATED": "leave it out: changes carry whole rows",
    "IDENTITY": "leave it out: changes carry their keys",
    "COLLATE": "leave it out: text is ordered by its UTF-8 bytes",
    "COMMENT": "use a -- comment",
    "NULL": "leave it out: columns outside the key may be null",
    "INDEX": "leave it out: indexes follow the subscriptions",
    "OR": "write CREATE TABLE name (..)",
    "TEMP": "write CREATE TABLE name (..)",
    "TEMPORARY": "write CREATE TABLE name (..)",
    "IF": "write CREATE TABLE name (..)",
    "VIEW": "only tables are declared; a view is a subscription",
    "AS": "list the columns",
    "LIKE": "list the columns",
}
