"""Results come in the order of the contract; what cannot be told goes to quarantine, and the rest is told."""

import json
from random import Random

from relay_plans import DOCUMENTS, PATTERNS, random_plan, views_of

from tidings.relay import rows as rows_limits
from tidings.relay.errors import DocumentError
from tidings.relay.evaluate import evaluate_pattern
from tidings.relay.files import View, read_documents
from tidings.relay.pattern import parse_pattern
from tidings.relay.plan import PUBLISHER, RelayPlan
from tidings.relay.runtime.run import Switch, result_line, run_relay

VIEWS = views_of(PATTERNS)


def run(plan, views, documents):
    put_aside = []
    found = list(run_relay(plan, views, documents, quarantine=lambda *words: put_aside.append(words)))
    return found, put_aside


def test_results_in_order():
    names = [f"{number}.xml" for number in range(len(DOCUMENTS))]
    found, put_aside = run(random_plan(Random(3), VIEWS), VIEWS, zip(names, DOCUMENTS, strict=True))
    assert found == [
        (view.id, name, rows)
        for name, document in zip(names, DOCUMENTS, strict=True)
        for view in sorted(VIEWS, key=lambda view: view.id)
        if (rows := evaluate_pattern(view.query, document))
    ]
    assert found
    assert put_aside == []


def test_the_plan_changes_between_documents():
    switch = Switch(RelayPlan({"v3": (PUBLISHER,), "v1": ("v3",)}), [VIEWS[3], View("v1", VIEWS[4].query)])
    items = [("1", DOCUMENTS[0]), switch, ("2", DOCUMENTS[0])]
    found, _ = run(RelayPlan({"v1": (PUBLISHER,), "v2": (PUBLISHER,)}), VIEWS[1:3], items)
    assert [(view, name) for view, name, _ in found] == [("v1", "1"), ("v2", "1"), ("v1", "2"), ("v3", "2")]
    assert found[2][2] == evaluate_pattern(VIEWS[4].query, DOCUMENTS[0])


def test_broken_documents_go_to_quarantine(tmp_path):
    (tmp_path / "1.json").write_text('{"item": {"name": "pen"}}')
    (tmp_path / "2.json").write_text("{")
    (tmp_path / "3.json").write_text('{"item": {"name": "ink"}}')
    found, put_aside = run(RelayPlan({"v1": (PUBLISHER,)}), VIEWS[1:2], read_documents(tmp_path))
    assert found == [("v1", "1.json", [("pen",)]), ("v1", "3.json", [("ink",)])]
    assert [(name, view) for name, view, _ in put_aside] == [("2.json", None)]
    assert "not JSON" in put_aside[0][2]


def test_names_that_are_no_text_go_to_quarantine():
    documents = [("\udc80.xml", DOCUMENTS[0]), ("2.xml", DocumentError("gone")), ("3.xml", DOCUMENTS[0])]
    found, put_aside = run(RelayPlan({"v1": (PUBLISHER,)}), VIEWS[1:2], documents)
    assert [document for _, document, _ in found] == ["3.xml"]
    assert [name for name, _, _ in put_aside] == ["\udc80.xml", "2.xml"]


def test_too_many_rows_are_the_trouble_of_one_view(monkeypatch):
    monkeypatch.setattr(rows_limits, "PARTIAL_ROWS_MAX", 20)
    # Branches multiply; what is computed from the view is not concerned.
    many = View("many", parse_pattern("//shop[//name{id}][//name{id}][//name{id}]//name{val}"))
    few = View("few", parse_pattern('//shop[//name="pen"][//name="ink"]//name{val}'))
    plan = RelayPlan({"few": ("many",), "many": (PUBLISHER,), "v1": (PUBLISHER,)})
    documents = [("4.xml", DOCUMENTS[3]), ("2.xml", DOCUMENTS[1]), ("5.json", DOCUMENTS[5])]
    found, put_aside = run(plan, [few, many, VIEWS[1]], documents)
    assert found == [
        ("few", "4.xml", [("ink",), ("pen",)]),
        ("v1", "4.xml", [("ink",), ("pen",)]),
        ("many", "5.json", [("1.2.1.1", "1.2.1.1", "1.2.1.1", "pen")]),
        ("v1", "5.json", [("box",), ("pen",)]),
    ]
    ((name, view, reason),) = put_aside
    assert (name, view) == ("4.xml", "many")
    assert "partial rows" in reason


def test_lines_are_as_the_contract_has_them():
    line = result_line("v1", "ä.xml", [("1.3.2", 'say "hi"'), ("1.4", "\n")])
    assert line == '{"view":"v1","document":"ä.xml","rows":[["1.3.2","say \\"hi\\""],["1.4","\\n"]]}\n'.encode()
    assert json.loads(line)["rows"][1] == ["1.4", "\n"]
