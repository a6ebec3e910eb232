"""Views and documents of relay: statistics of the published sets, schema, determinism, and that they fit each other."""

from __future__ import annotations

import json
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from tidings.cli import workload as command
from tidings.cli.workload import WORKLOADS
from tidings.model.errors import UsageError
from tidings.relay.document import Document
from tidings.relay.evaluate import node_matches
from tidings.relay.files import parse_document, read_documents, read_sites, read_views
from tidings.relay.pattern import Pattern, parse_pattern
from tidings.relay.workloads.documents import BYTES_MAX, BYTES_MIN, document_json, document_xml
from tidings.relay.workloads.dtd import ELEMENTS, LABELS, VALUES
from tidings.relay.workloads.views import DEPTH_MAX, NODES_MIN, distinct_views, repeated_views

SET, FEW = 20_000, 5_000


@pytest.fixture(scope="module")
def views() -> list[Pattern]:
    return list(islice(distinct_views(0), SET))


@pytest.fixture(scope="module")
def few_views() -> list[Pattern]:
    return list(islice(distinct_views(0), FEW))


def xml(number: int, values: int = len(VALUES)) -> Document:
    return parse_document("a.xml", document_xml(0, number, values))


def per_view(patterns: list[Pattern]) -> tuple[float, float, float]:
    """Nodes, nodes that return something, predicates."""
    nodes = [node for pattern in patterns for node in pattern.nodes]
    counts = (len(nodes), sum(bool(node.returns) for node in nodes), sum(node.constant is not None for node in nodes))
    return counts[0] / len(patterns), counts[1] / len(patterns), counts[2] / len(patterns)


def invoke(*words: str) -> str:
    """What the command prints. Errors pass through: `tidings` itself turns them into exit codes."""
    app = typer.Typer()
    command.add_to(app)
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_schema_is_closed_and_has_83_labels() -> None:
    assert len(LABELS) == 83
    assert {child.label for element in ELEMENTS.values() for child in element.children} == set(ELEMENTS) - {"site"}
    assert len(set(VALUES)) == len(VALUES) == 50


@pytest.mark.extended
def test_statistics_are_those_of_the_published_set(views: list[Pattern]) -> None:
    """Of 100,000; smaller sets have a little fewer, as the small views are found first."""
    nodes, returning, predicates = per_view(views)
    assert nodes == pytest.approx(6.13, rel=0.08)
    assert returning == pytest.approx(2.52, rel=0.08)
    assert predicates == pytest.approx(0.72, rel=0.08)
    anchored = sum(pattern.text.startswith("/site") for pattern in views)
    assert anchored == pytest.approx(0.35 * SET, rel=0.1)
    assert len({pattern.canonical.text for pattern in views}) == SET


def test_views_are_distinct_and_can_be_read(few_views: list[Pattern]) -> None:
    assert len({pattern.canonical.text for pattern in few_views}) == FEW
    for pattern in few_views[:2_000]:
        assert parse_pattern(pattern.text) == pattern
        assert len(pattern.nodes) >= NODES_MIN
        assert max(_depth(pattern, number) for number in range(len(pattern.nodes))) <= DEPTH_MAX + 3


def _depth(pattern: Pattern, number: int) -> int:
    return 0 if number == -1 else 1 + _depth(pattern, pattern.parents[number])


def test_views_ask_for_what_the_schema_has(few_views: list[Pattern]) -> None:
    assert {node.label for pattern in few_views for node in pattern.nodes} == set(LABELS)
    for pattern in few_views:
        for node, parent in zip(pattern.nodes[1:], pattern.parents[1:], strict=True):
            if node.axis == "/":
                assert node.label in ELEMENTS[pattern.nodes[parent].label].labels, pattern
            if node.constant is not None:
                assert node.label.startswith("@") or ELEMENTS[node.label].has_text, pattern


@pytest.mark.extended
def test_popular_values_are_compared_with_more_often(views: list[Pattern]) -> None:
    counts = Counter(node.constant for pattern in views for node in pattern.nodes if node.constant is not None)
    assert set(counts) == set(VALUES)
    assert 0.18 < counts[VALUES[0]] / counts.total() < 0.26
    assert {n.constant for p in islice(distinct_views(0, values=2), 300) for n in p.nodes} == {None, *VALUES[:2]}


def test_duplicates_are_as_many_as_asked_for_and_differ_in_the_order_of_branches() -> None:
    found = list(repeated_views(0, 3_000, 900))
    copies = Counter(pattern.canonical.text for pattern in found)
    assert len(found) == 3_000 and len(copies) == 900
    assert set(copies) == {pattern.canonical.text for pattern in islice(distinct_views(0), 900)}
    assert len({pattern.text for pattern in found}) > 1_200
    popular = [count for _, count in copies.most_common(90)]
    assert sum(popular) > 0.3 * len(found)


def test_the_seed_decides() -> None:
    assert list(repeated_views(3, 200, 60)) == list(repeated_views(3, 200, 60))
    assert list(islice(distinct_views(3), 50)) != list(islice(distinct_views(4), 50))
    assert document_xml(3, 1) == document_xml(3, 1)
    assert len({document_xml(3, 1), document_xml(3, 2), document_xml(4, 1)}) == 3


def test_documents_follow_the_schema() -> None:
    document = xml(1)
    assert document.labels[0] == "site"
    for node, parent in enumerate(document.parents):
        assert node == 0 or document.labels[node] in ELEMENTS[document.labels[parent]].labels
    counts = Counter(zip(document.parents, document.labels, strict=True))
    for node, label in enumerate(document.labels):
        if label.startswith("@"):
            continue
        element = ELEMENTS[label]
        numbers = {child.label: counts[node, child.label] for child in element.children}
        assert all(counts[node, name] == 1 for name in element.attributes)
        if element.is_either:
            assert sum(numbers.values()) == 1
        elif not element.is_choice:
            assert all(c.least <= numbers[c.label] <= (c.most or len(document)) for c in element.children), label
        assert not element.has_text or document.val(node)


def test_documents_have_10_to_40_kilobytes() -> None:
    sizes = [len(document_xml(1, number)) for number in range(40)]
    assert BYTES_MIN <= min(sizes) < 15_000 and 33_000 < max(sizes) <= BYTES_MAX


def test_json_has_the_same_tree() -> None:
    """Below the key `site`; attributes are keys with @."""
    one, other = xml(2), parse_document("a.json", document_json(0, 2))
    assert other.labels[0] == "root"
    assert other.labels[1:] == one.labels
    assert other.parents[2:] == tuple(parent + 1 for parent in one.parents[1:])
    leaves = [node for node, label in enumerate(one.labels) if label.startswith("@") or not _has_children(one, node)]
    assert all(one.val(node) == other.val(node + 1) for node in leaves)


def _has_children(document: Document, node: int) -> bool:
    return document.ends[node] > node + 1


@pytest.mark.parametrize(("values", "share"), [(3, 0.9), (50, 0.65)])
def test_most_views_find_something_in_a_document(values: int, share: float) -> None:
    patterns = list(islice(distinct_views(0, values), 600))
    found = [bool(node_matches(pattern, document)[0]) for document in _documents(values) for pattern in patterns]
    assert sum(found) > share * len(found)


def _documents(values: int) -> list[Document]:
    return [xml(number, values) for number in range(4)]


def test_the_command_writes_views_and_sites(tmp_path: Path) -> None:
    words = ("views", "--out", str(tmp_path), "--views", "300", "--distinct", "90", "--seed", "2")
    assert invoke(*words, "--sites", "7", "--capacity", "50") == ""
    sites = read_sites(tmp_path / "sites.jsonl")
    assert [site.id for site in sites] == [f"s{number}" for number in range(1, 8)]
    assert all(site.capacity == 50 and site.position is not None for site in sites)
    views = read_views(tmp_path / "views.jsonl", {site.id for site in sites})
    assert [view.id for view in views] == [f"v{number}" for number in range(1, 301)]
    assert [view.query for view in views] == list(repeated_views(2, 300, 90))
    assert {view.site for view in views} == {site.id for site in sites}


def test_views_without_sites(tmp_path: Path) -> None:
    invoke("views", "--out", str(tmp_path), "--views", "20")
    assert [path.name for path in tmp_path.iterdir()] == ["views.jsonl"]
    views = read_views(tmp_path / "views.jsonl")
    assert [view.query for view in views] == list(islice(distinct_views(0), 20))
    assert all(view.site is None for view in views)


@pytest.mark.parametrize("format", ["xml", "json"])
def test_the_command_writes_documents_that_suit_the_views(tmp_path: Path, format: str) -> None:
    invoke("documents", "--out", str(tmp_path), "--documents", "3", "--format", format, "--values", "3", "--seed", "1")
    invoke("views", "--out", str(tmp_path), "--views", "200", "--format", format, "--values", "3", "--seed", "1")
    views = read_views(tmp_path / "views.jsonl")
    documents = dict(read_documents(tmp_path / "documents"))
    assert list(documents) == [f"000{number}.{format}" for number in (1, 2, 3)]
    for document in documents.values():
        assert isinstance(document, Document)
        assert sum(bool(node_matches(view.query, document)[0]) for view in views) > 0.85 * len(views)


def test_a_folder_with_other_documents_is_refused(tmp_path: Path) -> None:
    words = ("documents", "--out", str(tmp_path), "--documents")
    invoke(*words, "3")
    invoke(*words, "3", "--seed", "1")
    with pytest.raises(UsageError, match=r"other files, such as 0003\.xml"):
        invoke(*words, "2")
    assert len(list((tmp_path / "documents").iterdir())) == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("views", "--rows", "3"), r"--rows means nothing for the workload 'views', whose options are --views, --dist"),
        (("documents", "--views", "3"), r"--views means nothing for the workload 'documents'"),
        (("market", "--format", "json"), r"'market', whose options are --subscriptions, --changes, --rows, --seed"),
        (("views", "--views", "3", "--distinct", "4"), "no more can differ"),
        (("views", "--capacity", "4"), "say how many --sites"),
        (("views", "--values", "51"), "there are 50"),
        (("documents",), "--out DIR"),
    ],
)
def test_mistakes(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        invoke(*words, *(() if words == ("documents",) else ("--out", str(tmp_path))))
    assert list(tmp_path.iterdir()) == []


def test_the_list_has_them() -> None:
    shown = invoke("list").splitlines()
    assert [line.split()[0] for line in shown] == list(WORKLOADS)
    assert {"views", "documents"} <= set(WORKLOADS)
    assert [output.unit for output in WORKLOADS["documents"].outputs(0, {"documents": 2})] == ["documents"]
    assert json.loads(next(WORKLOADS["views"].outputs(0, {"views": 1})[0].files["views.jsonl"]))["id"] == "v1"
