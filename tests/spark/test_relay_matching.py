"""Documents matched with views on Spark: what each view says of each document by itself, with a reason where one is broken."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tidings.relay.document import Document
from tidings.relay.errors import DocumentError
from tidings.relay.evaluate import node_matches
from tidings.relay.files import View, parse_document
from tidings.relay.pattern import Pattern, parse_pattern
from tidings.relay.spark.matching import Encode, Encoding, match_in_order

pytestmark = pytest.mark.spark

TEXTS = [
    "//item[/name{val}]/@id",
    "/site//item{id}",
    '//item[/name="pen"]{cont}',
    "//root[/name{val}]",
    "//nowhere{id}",
]
VIEWS = [View(f"v{number}", parse_pattern(text)) for number, text in enumerate(TEXTS)]
BROKEN = {13: ("broken.xml", b"<site><item></site>"), 17: ("table.csv", b"a,b"), 19: ("none.xml", None)}


def _whole() -> Encoding:
    """Ids, texts and contents of all matches: they tell of any difference. Made here: workers do not have this module."""

    def encoding(document: Document) -> Encode:
        def encode(pattern: Pattern, matches: list[list[int]]) -> bytes:
            said = [[(document.id(n), document.val(n), document.cont(n)) for n in nodes] for nodes in matches]
            return json.dumps([pattern.text, said]).encode()

        return encode

    return encoding


def _documents() -> dict[int, tuple[str, bytes | None]]:
    """By seq. Several partitions' worth, one of them JSON, broken ones in the middle."""
    names = ["pen", "ink", "pen", "paper"]
    found: dict[int, tuple[str, bytes | None]] = {}
    for seq in range(30):
        items = "".join(f'<item id="{n}"><name>{names[n % 4]}</name></item>' for n in range(seq % 5))
        found[seq] = (f"{seq}.xml", f"<site><region>{items}</region></site>".encode())
    found[7] = ("7.json", b'{"name": "pen", "item": [{"name": "pen", "@id": 3}]}')
    return {**found, **BROKEN}


def _plain(name: str, content: bytes | None) -> dict[str, bytes] | None:
    """What all views say; None of a document that cannot be read."""
    try:
        document = parse_document(name, content or b"")
    except DocumentError:
        return None
    encode = _whole()(document)
    matches = {view: node_matches(view.query, document) for view in VIEWS}
    return {view.id: encode(view.query, nodes) for view, nodes in matches.items() if nodes[0]}


def test_views_say_what_each_says_alone_and_broken_documents_are_named(spark: SparkSession) -> None:
    documents = _documents()
    mixed = sorted(documents, key=lambda seq: (seq * 7) % 30)
    names, contents = zip(*(documents[seq] for seq in mixed), strict=True)
    table = pa.table(
        {"seq": pa.array(mixed), "name": pa.array(names), "content": pa.array(contents, pa.binary())},
    )
    found = list(match_in_order(spark, spark.createDataFrame(table).repartition(3), VIEWS, _whole()))
    assert [(each.seq, each.name) for each in found] == [(seq, documents[seq][0]) for seq in range(30)]
    for each in found:
        assert each.seq is not None
        right = _plain(*documents[each.seq])
        assert (each.reason is None) == (right is not None)
        assert each.payloads == (right or {})
    assert {view for each in found for view in each.payloads} == {"v0", "v1", "v2", "v3"}
    reasons = {each.seq: each.reason for each in found if each.reason is not None}
    assert reasons.keys() == BROKEN.keys()
    assert reasons[13].startswith("not XML")
    assert reasons[17].startswith("neither XML nor JSON")
    assert reasons[19] == "the content of the document is null"
