"""XML as a tree: labels, ids, texts and canonical subtrees; what is broken or dangerous is refused with a reason."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.model.errors import RecordError
from tidings.relay import document as limits
from tidings.relay.errors import DocumentError
from tidings.relay.xml_document import parse_xml


def nodes(document):
    return [(document.id(node), document.labels[node], document.val(node)) for node in range(len(document))]


def test_a_small_document():
    document = parse_xml(
        b'<site b="2" a="1">x<item id="7">pen</item><!-- no --> <item/><?do it?><name>y &amp; z</name></site>'
    )
    assert nodes(document) == [
        ("1", "site", "xpen y & z"),
        ("1.@b", "@b", "2"),
        ("1.@a", "@a", "1"),
        ("1.1", "item", "pen"),
        ("1.1.@id", "@id", "7"),
        ("1.2", "item", ""),
        ("1.3", "name", "y & z"),
    ]
    assert document.parents == (-1, 0, 0, 0, 3, 0, 0)
    assert document.ends == (7, 2, 3, 5, 5, 6, 7)
    assert document.nodes_of["item"] == (3, 5)
    assert document.cont(0) == (
        '<site a="1" b="2">x<item id="7">pen</item> <item></item><?do it?><name>y &amp; z</name></site>'
    )
    assert document.cont(3) == '<item id="7">pen</item>'
    assert document.cont(4) == "7"


def test_the_encoding_is_that_of_the_document():
    text = '<?xml version="1.0" encoding="{}"?><a>é€</a>'
    assert parse_xml(text.format("utf-8").encode()).val(0) == "é€"
    assert parse_xml(text.format("utf-16").encode("utf-16")).val(0) == "é€"
    assert parse_xml("\ufeff<a>é</a>".encode()).cont(0) == "<a>é</a>"


def test_labels_have_the_prefix_of_the_document():
    data = b'<rss xmlns="u:1" xmlns:i="u:2" xmlns:j="u:2"><title/><j:title i:k="v" xml:lang="en"/></rss>'
    document = parse_xml(data)
    assert document.labels == ("rss", "title", "j:title", "@i:k", "@xml:lang")
    assert document.cont(1) == '<title xmlns="u:1" xmlns:i="u:2" xmlns:j="u:2"></title>'


def test_a_dtd_is_not_read():
    assert parse_xml(b'<!DOCTYPE a SYSTEM "none.dtd"><a>x</a>').val(0) == "x"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not XML"),
        (b"pen", "not XML"),
        (b"<a><b></a>", "not XML: Opening and ending tag mismatch"),
        (b"<a/><b/>", "not XML"),
        (b"<a>\xe9</a>", "not XML"),
        (b'<a x="1" x="2"/>', "not XML"),
        (b"<p:a/>", "not XML: Namespace prefix p"),
        (b"<a>&x;</a>", "not XML: Entity 'x' not defined"),
        (b'<!DOCTYPE a SYSTEM "none.dtd"><a>&x;</a>', "uses entities of a DTD"),
        (b'<!DOCTYPE a SYSTEM "none.dtd"><a b="&x;"/>', "uses entities of a DTD, which is not read: Entity 'x'"),
        (b"<!DOCTYPE a [%x;]><a>&y;</a>", "uses entities"),
        (b'<!DOCTYPE a [<!ENTITY % x "y">]><a/>', "declares entities"),
        (b'<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>', "declares entities"),
        (b'<!DOCTYPE a [<!ENTITY x "y">]><a b="&x;"/>', "declares entities"),
        (b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/hostname">]><a>&x;</a>', "declares entities"),
        (b'<a xmlns="here"/>', "not an absolute URI"),
        (b"<a>" * 201 + b"</a>" * 201, "too deep"),
        (b"<a>" * 5_000, "not XML: Excessive depth"),
    ],
)
def test_refusals(data, words):
    with pytest.raises(DocumentError) as caught:
        parse_xml(data)
    assert words in str(caught.value)
    assert isinstance(caught.value, RecordError)


def test_entities_that_multiply():
    kinds = "".join(f'<!ENTITY e{n + 1} "{f"&e{n};" * 20}">' for n in range(12))
    for use in ("<a>&e12;</a>", '<a b="&e12;"/>'):
        with pytest.raises(DocumentError):
            parse_xml(f'<!DOCTYPE a [<!ENTITY e0 "ha">{kinds}]>{use}'.encode())


def test_sizes_are_bounded(monkeypatch):
    monkeypatch.setattr(limits, "DOCUMENT_NODES_MAX", 3)
    assert len(parse_xml(b'<a b="1"><c/></a>')) == 3
    with pytest.raises(DocumentError, match="the limit is 3 nodes"):
        parse_xml(b'<a b="1"><c/><c/></a>')
    monkeypatch.setattr(limits, "DOCUMENT_BYTES_MAX", 3)
    with pytest.raises(DocumentError, match="the limit is 3 bytes"):
        parse_xml(b"<a/>")


PIECES = [
    "<a>",
    "</a>",
    "<b x='1'>",
    "</b>",
    "<c/>",
    "t",
    "&amp;",
    "&e;",
    "<!--c-->",
    "<?p i?>",
    "<![CDATA[<]]>",
    "<",
    "\x00",
]


@given(st.lists(st.sampled_from(PIECES)))
def test_a_document_is_read_or_refused(pieces):
    try:
        document = parse_xml("".join(["<a>", *pieces, "</a>"]).encode())
    except DocumentError:
        return
    for node in range(len(document)):
        if not document.labels[node].startswith("@"):
            again = parse_xml(document.cont(node).encode())
            assert again.val(0) == document.val(node)
            assert again.labels == document.labels[node : document.ends[node]]
            assert again.cont(0) == document.cont(node)


def test_contents_keep_the_namespace_that_comes_from_above():
    document = parse_xml(b'<r xmlns="http://d"><x><j xmlns:p="http://p2"><p:i><k/></p:i></j></x>t</r>')
    assert document.cont(1) == '<x xmlns="http://d"><j xmlns:p="http://p2"><p:i><k></k></p:i></j></x>'
