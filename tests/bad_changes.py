"""Bad change records by name, each the bytes of a line. They stand between good records with seq 2 and seq 9."""

import json

CATALOG = """
CREATE TABLE items (
    id BIGINT PRIMARY KEY, n INT, price DOUBLE, name TEXT, is_open BOOLEAN, day DATE, moment TIMESTAMP, data BINARY
);
CREATE TABLE pairs (a TEXT, n INT, v DOUBLE, PRIMARY KEY (a, n));
CREATE TABLE market (topic TEXT, lot BIGINT, price DOUBLE, area BOX) WITH (rows = 'constraints');
"""
ROW = {
    "id": 5,
    "n": 1,
    "price": 1.5,
    "name": "x",
    "is_open": True,
    "day": "2024-01-31",
    "moment": "2024-01-31T12:00:00",
    "data": "AAE=",
}

BAD_CONSTRAINTS = {
    "": "the constraint is empty",
    "  \n": "the constraint is empty",
    "lot > 1 AND lot < 2": "no value of column 'lot' satisfies this near 'lot < 2' at line 1, column 13",
    "topic = 'a' AND topic = 'b'": "no value of column 'topic' satisfies this near \"topic = 'b'\" at line 1, column 17",
    "(lot = 1 AND lot = 2) OR (price < 1 AND price > 2)": "nothing satisfies this constraint",
    "lot = 'x'": "column 'lot' is BIGINT and cannot be compared with a string near \"lot = 'x'\" at line 1, column 1",
    "topic = 'a' AND lot = 1.5": "column 'lot' is BIGINT: the literal does not fit near '1.5' at line 1, column 23",
    "price = NaN": "a number must be finite near 'price = NaN' at line 1, column 1",
    "price = 1e999": "no value of column 'price' satisfies this",
    "colour = 'red'": "unknown column 'colour' near 'colour' at line 1, column 1",
    "lot IS NULL": "constraints know no NULL near 'lot IS NULL' at line 1, column 1",
    "area = box(0, 0, 0, 1)": "this is no box near 'area = box(0, 0, 0, 1)' at line 1, column 1",
    "overlaps(area, box(3, 0, 1, 1))": "this is no box",
    "within(area, box(0, 0, 1e999, 1))": "this is no box",
    "lot = 1 AND overlaps(area, box(0, 0, 1))": "a box of 4 numbers is expected near",
    "NOT contains(area, box(0, 0, 1, 1))": "NOT is not supported on geometric conditions",
    "area = 5": "column 'area' is BOX and cannot be compared near 'area = 5' at line 1, column 1",
    "overlaps(lot, box(0, 0, 1, 1))": "column 'lot' is BIGINT and has no place in the plane",
    "lot = 1 ORDER BY lot LIMIT 2": "a constraint has no order near 'ORDER BY lot LIMIT 2' at line 1, column 9",
    "lot = 1; DROP TABLE market": "there is more than one statement",
    "lot = 1) OR (lot = 2": "this is not valid SQL",
    "lot = 1 UNION SELECT 1": "UNION is not supported",
    "moved(price) >= 1": "constraints do not move",
    " OR ".join(f"(lot = {i} AND price = {i})" for i in range(100)): "the condition comes to more than 64 disjuncts",
    f"topic = '{'x' * 70_000}'": "the text has 70,037 characters; the limit is 65,536",
}
"""Constraints that make no sense, with what the reason says."""

WRONG_VALUES = {
    "id": ['"1"', "1.5", "true", "null", "[]", "{}", "9223372036854775808", "-9223372036854775809", "1e300", "1" * 400],
    "n": ['"1"', "0.5", "false", "[1]", "{}", "2147483648", "-2147483649", "9223372036854775807", "1e10"],
    "price": [
        '"1.5"',
        "true",
        "[]",
        "{}",
        "NaN",
        "Infinity",
        "-Infinity",
        "1e999",
        "-1e999",
        "1.",
        ".5",
        "+1",
        "0x10",
        "01",
    ],
    "name": [
        "1",
        "1.5",
        "true",
        "[]",
        "{}",
        '["x"]',
        "x",
        "'x'",
        '"\\ud800"',
        '"\\udc00\\ud800"',
        '"\\x41"',
        '"\t"',
        '"a',
    ],
    "is_open": ["0", "1", '"true"', "[]", "{}", "True", "yes", "1.0"],
    "day": [
        "1",
        "true",
        '""',
        '"2024-02-30"',
        '"2024-13-01"',
        '"2024-1-1"',
        '"20240101"',
        '"2024-01-01T00:00:00"',
        '"0000-01-01"',
        '"10000-01-01"',
        '"today"',
        "[2024, 1, 1]",
    ],
    "moment": [
        "1.5",
        "true",
        '""',
        '"2024-01-01"',
        '"2024-01-01T24:00:00"',
        '"2024-01-01T12:60:00"',
        '"2024-02-30T00:00:00"',
        '"2024-01-01T00:00:00+99:00"',
        '"noon"',
        '"0001-01-01T00:00:00+01:00"',
        '"9999-12-31T23:59:59-01:00"',
        "[]",
    ],
    "data": ["1", "true", '"!"', '"A"', '"AAE"', "[0, 1]", "{}", '"\\u00ff\\u00ff"'],
}


def _line(**record):
    return json.dumps(record).encode()


def _change(**fields):
    return _line(**{"seq": 5, "table": "items", "op": "insert", "row": ROW, **fields})


def _without(name):
    return {key: value for key, value in ROW.items() if key != name}


def _with_text(column, text):
    """A change whose row has this very text as the value of the column."""
    rest = json.dumps(_without(column))
    return f'{{"seq": 5, "table": "items", "op": "insert", "row": {{"{column}": {text}, {rest[1:]}}}'.encode()


def _debezium(op="c", before=None, after=None, source=None, **more):
    source = {"table": "items"} if source is None else source
    return _line(op=op, before=before, after=after, source=source, **{"seq": 5, **more})


def _raw(text):
    return text if isinstance(text, bytes) else text.encode()


def bad_values():
    return {
        f"{column} = {text[:40]}": _with_text(column, text) for column, texts in WRONG_VALUES.items() for text in texts
    }


def bad_json():
    texts = {
        "a bare word": "hello",
        "a brace": "{",
        "a bracket": "[",
        "two objects": '{"seq": 5} {"seq": 6}',
        "an array": "[]",
        "an array of a change": f"[{_change().decode()}]",
        "null": "null",
        "true": "true",
        "a number": "5",
        "a text": '"insert"',
        "an empty object": "{}",
        "cut in the middle": _change()[:60],
        "trailing comma": _change()[:-1] + b",}",
        "trailing garbage": _change() + b"}",
        "single quotes": _change().replace(b'"', b"'"),
        "a comment": _change() + b" // ok",
        "a byte order mark": b"\xef\xbb\xbf" + _change(),
        "UTF-16": _change().decode().encode("utf-16"),
        "invalid UTF-8 in a value": _change().replace(b'"x"', b'"\xff\xfe"'),
        "invalid UTF-8 in a name": _change().replace(b'"name"', b'"n\xc3\x28"'),
        "invalid UTF-8 outside": b"\xff" + _change(),
        "overlong UTF-8": _change().replace(b'"x"', b'"\xc0\xaf"'),
        "a surrogate in UTF-8": _change().replace(b'"x"', b'"\xed\xa0\x80"'),
        "NUL bytes": b"\0\0\0",
        "a control character in a text": _change().replace(b'"x"', b'"\x01"'),
        "deep arrays": "[" * 100_000,
        "deep objects": '{"a":' * 100_000,
        "deep closed arrays": "[" * 20_000 + "]" * 20_000,
        "a deep row": b'{"seq": 5, "table": "items", "op": "insert", "row": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
        "a deep value": _with_text("name", "[" * 50_000 + "]" * 50_000),
        "a deep unknown field": b'{"seq": 5, "zzz": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
        "a huge record": _with_text("name", '"' + "x" * (17 * 2**20) + '"'),
        "huge garbage": "x" * (17 * 2**20),
        "CSV": "5,items,insert,1",
        "XML": "<change seq='5'/>",
    }
    return {f"JSON: {name}": _raw(text) for name, text in texts.items()}


def bad_fields():
    records = {
        f"without {name}": {key: value for key, value in json.loads(_change()).items() if key != name}
        for name in ("seq", "table", "op", "row")
    }
    records |= {f"row without {name}": json.loads(_change(row=_without(name))) for name in ROW}
    lines = {name: _line(**record) for name, record in records.items()}
    lines |= {
        "unknown table": _change(table="nothing"),
        "table in capitals": _change(table="ITEMS"),
        "empty table": _change(table=""),
        "table with spaces": _change(table=" items"),
        "numeric table": _change(table=1),
        "null table": _change(table=None),
        "list of tables": _change(table=["items"]),
        "constraint table": _change(table="market"),
        "row with where": _change(where="n = 1"),
        "row with id": _change(id="p"),
        "row that expires": _change(expires=7),
        "constraint without id": _line(seq=5, table="market", op="insert", where="lot = 1"),
        "constraint with empty id": _line(seq=5, table="market", op="insert", id="", where="lot = 1"),
        "constraint with a number as id": _line(seq=5, table="market", op="insert", id=3, where="lot = 1"),
        "constraint without where": _line(seq=5, table="market", op="insert", id="p"),
        "constraint with row": _line(seq=5, table="market", op="insert", id="p", where="lot = 1", row={"lot": 1}),
        "constraint expired before time": _line(seq=5, table="market", op="insert", id="p", where="lot = 1", expires=0),
        "constraint expiring at a date": _line(
            seq=5, table="market", op="insert", id="p", where="lot = 1", expires="2024-13-01T00:00:00"
        ),
        "update of an unknown constraint": _line(seq=5, table="market", op="update", id="p", where="lot = 1"),
        "delete of an unknown constraint": _line(seq=5, table="market", op="delete", id="p"),
        **{
            f"constraint {where[:40]!r}": _line(seq=5, table="market", op="insert", id="p", where=where)
            for where in BAD_CONSTRAINTS
        },
        "unknown op": _change(op="merge"),
        "op in capitals": _change(op="INSERT"),
        "empty op": _change(op=""),
        "numeric op": _change(op=1),
        "null op": _change(op=None),
        "Debezium op in a plain record": _change(op="c"),
        "unknown field": _change(note="hello"),
        "misspelt field": _line(seq=5, tabel="items", op="insert", row=ROW),
        "unknown column": _change(row={**ROW, "colour": "red"}),
        "column in capitals": _change(row={**_without("name"), "NAME": "x"}),
        "empty column name": _change(row={**ROW, "": 1}),
        "row is null": _change(row=None),
        "row is a list": _change(row=list(ROW.values())),
        "row is a text": _change(row=json.dumps(ROW)),
        "row is a number": _change(row=7),
        "row is empty": _change(row={}),
        "update with the key alone": _change(op="update", row={"id": 1}),
        "upsert with the key alone": _change(op="upsert", row={"id": 1}),
        "delete without the key": _change(op="delete", row={"n": 1}),
        "delete with an empty row": _change(op="delete", row={}),
        "delete with a null key": _change(op="delete", row={"id": None}),
        "delete with an unknown column": _change(op="delete", row={"id": 1, "colour": "red"}),
        "delete with a wrong value": _change(op="delete", row={"id": 1, "n": "one"}),
        "delete with a text for a key": _change(op="delete", row={"id": "1"}),
        "half a key": _line(seq=5, table="pairs", op="delete", row={"a": "x"}),
        "null in half a key": _line(seq=5, table="pairs", op="insert", row={"a": "x", "n": None, "v": 1.0}),
        "insert with half a key": _line(seq=5, table="pairs", op="insert", row={"a": "x", "v": 1.0}),
    }
    return lines


def bad_order():
    return {
        "insert of an existing key": _change(row={**ROW, "id": 1}),
        "insert of an existing pair": _line(seq=5, table="pairs", op="insert", row={"a": "x", "n": 1, "v": 3.0}),
        "update of an unknown key": _change(op="update", row={**ROW, "id": 404}),
        "update of half a known pair": _line(seq=5, table="pairs", op="update", row={"a": "x", "n": 2, "v": 3.0}),
        "delete of an unknown key": _change(op="delete", row={"id": 404}),
        "delete of a full unknown row": _change(op="delete", row={**ROW, "id": 404}),
        "seq 0": _change(seq=0),
        "negative seq": _change(seq=-5),
        "lowest seq": _change(seq=-(2**63)),
        "seq beyond the last": _change(seq=2**63 - 1),
        "seq beyond int64": _change(seq=2**63),
        "seq beyond uint64": _change(seq=2**64),
        "seq with 400 digits": _change(seq=10**400),
        "seq as a float": _change(seq=5.5),
        "seq as an exponent": _change().replace(b'"seq": 5', b'"seq": 5e400'),
        "seq as a text": _change(seq="5"),
        "seq is true": _change(seq=True),
        "seq is null": _change(seq=None),
        "seq is a list": _change(seq=[5]),
        "seq with a leading zero": _change().replace(b'"seq": 5', b'"seq": 05'),
        "seq that has passed": _change(seq=1, row={**ROW, "id": 77}),
        "seq of the record before": _change(seq=2, row={**ROW, "id": 77}),
        "a record replayed": _change(seq=2, row={**ROW, "id": 2}),
    }


def bad_debezium():
    known = {**ROW, "id": 1}
    lines = {
        "no source": _line(op="c", before=None, after=ROW, seq=5),
        "source is null": _line(op="c", after=ROW, source=None, seq=5),
        "source is a text": _line(op="c", after=ROW, source="items", seq=5),
        "source without table": _debezium(after=ROW, source={"db": "x"}),
        "source with numeric table": _debezium(after=ROW, source={"table": 1}),
        "source with unknown table": _debezium(after=ROW, source={"table": "nothing"}),
        "source with constraint table": _debezium(after=ROW, source={"table": "market"}),
        "no op": _line(after=ROW, source={"table": "items"}, seq=5),
        "numeric op": _debezium(op=1, after=ROW),
        "unknown op": _debezium(op="x", after=ROW),
        "truncate": _debezium(op="t"),
        "logical message": _debezium(op="m"),
        "plain op in an envelope": _debezium(op="insert", after=ROW),
        "create without after": _debezium(op="c"),
        "create with before alone": _debezium(op="c", before=ROW),
        "update without after": _debezium(op="u", before=known),
        "delete without before": _debezium(op="d"),
        "delete with after alone": _debezium(op="d", after=known),
        "delete with an empty before": _debezium(op="d", before={}),
        "after with an unknown column": _debezium(after={**ROW, "colour": 1}),
        "after without a column": _debezium(after=_without("name")),
        "after with a wrong value": _debezium(after={**ROW, "price": "dear"}),
        "after is a list": _debezium(after=[1]),
        "before with a wrong value": _debezium(op="u", before={**known, "n": "one"}, after=known),
        "before is a text": _debezium(op="u", before="old", after=known),
        "the key changes": _debezium(op="u", before=known, after={**known, "id": 55}),
        "insert of an existing key": _debezium(op="c", after=known),
        "update of an unknown key": _debezium(op="u", before={"id": 404}, after={**ROW, "id": 404}),
        "delete of an unknown key": _debezium(op="d", before={"id": 404}),
        "seq 0": _debezium(after=ROW, seq=0),
        "negative seq": _debezium(after=ROW, seq=-1),
        "seq is a text": _debezium(after=ROW, seq="5"),
        "seq beyond int64": _debezium(after=ROW, seq=2**64),
        "wrapped with an unknown op": _line(schema={}, payload=json.loads(_debezium(op="x", after=ROW))),
        "wrapped without source": _line(schema={}, payload={"op": "c", "after": ROW}),
        "wrapped and empty": _line(schema={}, payload={}),
        "wrapped null": _line(schema={}, payload=None),
        "wrapped text": _line(schema={}, payload="c"),
        "wrapped twice": _line(payload={"payload": json.loads(_debezium(after=ROW))}),
    }
    return {f"Debezium: {name}": line for name, line in lines.items()}


BAD_CHANGES = {**bad_values(), **bad_json(), **bad_fields(), **bad_order(), **bad_debezium()}
