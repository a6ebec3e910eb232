"""Files of views, sites and documents are read as written; a mistake is refused with its line and reason."""

import subprocess
import sys

import pytest

from tidings.model.errors import UsageError
from tidings.relay import Document, DocumentError, evaluate_pattern, parse_pattern
from tidings.relay import document as limits
from tidings.relay.files import Site, View, parse_document, read_documents, read_sites, read_views


@pytest.fixture
def file(tmp_path):
    def write(content):
        path = tmp_path / "lines.jsonl"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def test_views(file):
    path = file(
        '\ufeff{"id": "v2", "pattern": "//item[/name{val}][//keyword=\\"gold\\"]/description{cont}", "site": "s1"}\r\n'
        "\n"
        '{"id": "v1", "pattern": "/a{id}", "site": null}'
    )
    views = [
        View("v2", parse_pattern('//item[/name{val}][//keyword="gold"]/description{cont}'), "s1"),
        View("v1", parse_pattern("/a{id}")),
    ]
    assert read_views(path) == views
    assert read_views(path, ["s1"]) == views


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            '{"id": "v2", "sql": "SELECT * FROM t"}',
            "view 'v2' has \"sql\": name the catalog of its tables with --catalog",
        ),
        ('{"id": "v2", "pattern": "/a", "sql": "x"}', 'view \'v2\' has both "pattern" and "sql"'),
        ('{"id": "v2", "sql": 7}', 'no "pattern" and no "sql"'),
        ('{"id": "v1", "pattern": "/b{id}"}', "view 'v1' is on line 1 already"),
        ('{"id": "v2", "pattern": "/b{id}", "site": "s9"}', "at the site 's9', which the sites do not have"),
        ('{"id": "v2", "pattern": "/b{id}", "site": 9}', "not the id of a site"),
        (
            '{"id": "v2", "pattern": "/b[x]{id}"}',
            "pattern of view 'v2' is refused: 'x' at the start of a branch at column 4",
        ),
        ('{"id": "v2", "pattern": 7}', 'no "pattern"'),
        ('{"id": "v2"}', 'no "pattern"'),
        ('{"pattern": "/b{id}"}', 'no "id"'),
        ('{"id": "", "pattern": "/b{id}"}', 'no "id"'),
        ('{"id": "publisher", "pattern": "/b{id}"}', "no view can have the id 'publisher'"),
        (
            '{"id": "v2", "pattern": "/b{id}", "capacity": 3}',
            "unknown field 'capacity': there are id, pattern, site, sql",
        ),
        ('{"id": "v2", "pattern": "/b{id}"', "not JSON: Expecting ',' delimiter at column 33"),
        ("[]", "not a JSON object"),
        (b'{"id": "\xff"}', "not JSON: byte 9 is not UTF-8"),
        ('{"id": "\\ud800", "pattern": "/b{id}"}', "half a surrogate pair"),
        ('{"id": ' + "9" * 5_000 + "}", "not JSON"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_views_that_are_refused(file, line, words):
    path = file(b'{"id": "v1", "pattern": "/a{id}"}\n\n' + (line if isinstance(line, bytes) else line.encode()) + b"\n")
    with pytest.raises(UsageError) as caught:
        read_views(path, ["s1"])
    assert str(caught.value).startswith(f"{path}, line 3: ")
    assert words in str(caught.value)


def test_without_sites_any_site_will_do(file):
    assert read_views(file('{"id": "v", "pattern": "/a{id}", "site": "s9"}'))[0].site == "s9"


@pytest.mark.parametrize("content", ["", "\n \n"])
def test_no_lines(file, content):
    with pytest.raises(UsageError, match="no views in "):
        read_views(file(content))
    with pytest.raises(UsageError, match="no sites in "):
        read_sites(file(content))


def test_no_file(tmp_path):
    with pytest.raises(UsageError, match=r"cannot read the views .*: No such file"):
        read_views(tmp_path / "none")
    with pytest.raises(UsageError, match=r"cannot read the sites .*: Is a directory"):
        read_sites(tmp_path)


def test_sites(file):
    path = file('{"id": "s1", "capacity": 50, "x": 0.3, "y": 7}\n{"id": "s2", "capacity": 1}\n{"id": "s3"}\n')
    assert read_sites(path) == [Site("s1", 50, (0.3, 7.0)), Site("s2", 1), Site("s3")]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ('"capacity": 0', "\"capacity\" of site 's' is not a whole number from 1 on"),
        ('"capacity": -1', "\"capacity\" of site 's' is not a whole number"),
        ('"capacity": 1.5', "whole number"),
        ('"capacity": true', "whole number"),
        ('"x": 1', "\"y\" of site 's' is not a finite number; a site has both"),
        ('"x": "1", "y": 1', '"x" of site'),
        ('"x": NaN, "y": 1', '"x" of site'),
        ('"x": 1e999, "y": 1', '"x" of site'),
        (f'"x": 1{"0" * 400}, "y": 1', '"x" of site'),
        ('"cap": 1', "unknown field 'cap'"),
    ],
)
def test_sites_that_are_refused(file, fields, words):
    with pytest.raises(UsageError, match="line 1: ") as caught:
        read_sites(file(f'{{"id": "s", {fields}}}'))
    assert words in str(caught.value)


def test_a_site_twice(file):
    with pytest.raises(UsageError, match="line 2: site 's' is on line 1 already"):
        read_sites(file('{"id": "s"}\n{"id": "s"}\n'))


def test_documents_are_in_the_order_of_their_names(tmp_path):
    files = {
        "b.xml": b"<a>1</a>",
        "a.json": b'{"a": 2}',
        "c.XML": b"<a>",
        "B.json": b"3",
        "d.txt": b"<a/>",
        ".x.xml": b"",
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "e.xml").mkdir()
    found = list(read_documents(tmp_path))
    assert [name for name, _ in found] == ["B.json", "a.json", "b.xml", "c.XML", "d.txt", "e.xml"]
    documents = [document for _, document in found if isinstance(document, Document)]
    assert [evaluate_pattern(parse_pattern("//a{val}"), document) for document in documents] == [[], [("2",)], [("1",)]]
    reasons = [str(reason) for _, reason in found if isinstance(reason, DocumentError)]
    assert reasons[0].startswith("not XML: ")
    assert reasons[1:] == [
        "neither XML nor JSON: the name of a document ends in .xml or .json (rows: .jsonl)",
        "not a file",
    ]


def test_a_document_that_is_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "DOCUMENT_BYTES_MAX", 10)
    (tmp_path / "a.json").write_bytes(b'"' + b"x" * 20 + b'"')
    [(_, reason)] = read_documents(tmp_path)
    assert "the limit is 10" in str(reason)


def test_no_documents(tmp_path):
    with pytest.raises(UsageError, match="no documents in the folder"):
        read_documents(tmp_path)
    with pytest.raises(UsageError, match="No such file"):
        read_documents(tmp_path / "none")


def test_the_name_says_the_format():
    assert parse_document("x.xml", b"<root/>").labels == parse_document("x.json", b"{}").labels
    with pytest.raises(DocumentError, match="neither XML nor JSON"):
        parse_document("x", b"<root/>")


def test_json_needs_no_lxml():
    code = (
        "import sys; sys.modules['lxml'] = None\n"
        "from tidings.relay.files import parse_document\n"
        "print(len(parse_document('a.json', b'[1]')))\n"
        "try: parse_document('a.xml', b'<a/>')\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "2",
        "UsageError XML documents need the package lxml: pip install '.[relay]' in the clone",
    ]
