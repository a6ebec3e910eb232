"""The offers bench runs at a tiny size, its numbers are the constraints of its SQL, and all ways find the same pairs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from research.__main__ import app
from research.bench import FamilyOptions, offers
from research.bench.offers import index, inline, peers, verify
from research.bench.offers.agreement import Constraints, by_definition, by_index
from research.bench.offers.cases import CASES, OffersData
from research.bench.offers.compared import Compared
from research.bench.offers.index import Loaded, Searched
from research.bench.offers.peers import scan_figures
from research.workloads.offers.paper import TABLE
from tidings.families.offers.constraint import pack
from tidings.model.errors import UsageError

SIZE = 500


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offers, "_TINY", 50)
    monkeypatch.setattr(index, "BUDGET_S", 0.05)
    monkeypatch.setattr(inline, "BUDGET_S", 0.05)
    monkeypatch.setattr(inline, "_ONE_BY_ONE", 40)
    monkeypatch.setattr(peers, "BUDGET_S", 0.1)


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_numbers_are_the_constraints_of_the_sql(case: offers.Case) -> None:
    data = OffersData(case, 40, 3, seed=1)
    given = Constraints(
        data.paper.catalog_sql,
        TABLE,
        dict(zip(map(str, range(20)), data.constraints(20), strict=True)),
        {str(i): sql.split(" WHERE ")[1] for i, sql in enumerate(data.queries())},
    )
    for numbers, compiled in (
        (data.subscriptions, given.subscription_boxes),
        (data.publications(20), given.publication_boxes),
    ):
        assert list(numbers.boxes()) == list(compiled.values())
        text, starts = numbers.packed()
        stops = [*starts[1:].tolist(), len(text)]
        packed = [text[start:stop].tobytes() for start, stop in zip(starts.tolist(), stops, strict=True)]
        assert packed == [pack(boxes) for boxes in compiled.values()]


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_index_and_scan_find_what_the_definition_finds(case: offers.Case) -> None:
    data = OffersData(case, SIZE, 1, seed=2)
    count, found = scan_figures(data).pairs
    expected = {
        (p, s)
        for p, s in by_definition(
            Constraints(
                data.paper.catalog_sql,
                TABLE,
                {str(i): where for i, where in enumerate(data.constraints(count))},
                {str(i): sql.split(" WHERE ")[1] for i, sql in enumerate(data.queries())},
            )
        )
    }
    assert {(str(p), str(s)) for p, s in found.tolist()} == expected and len(expected) > count
    loaded, searched = Loaded.of(data), Searched(data, count)
    hits = searched.search(loaded.index, searched.queries)
    assert np.array_equal(np.unique(hits[:, :2], axis=0), found)


@pytest.mark.extended
@pytest.mark.usefixtures("quick")
def test_the_report_has_all_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offers, "find_postgres", lambda *_: None)
    cases = ("proportional", "geometric")
    report = offers.run(FamilyOptions((SIZE, 2 * SIZE), cases=cases, batches=(1, 20), seed=3), lambda _: None)
    for case in cases:
        for key in (
            *("index.load_s", "index.bytes", "index.p1.ms", "index.p20.publications_per_s", "index.p20.matches"),
            *("inline.load_s", "inline.door_s", "inline.p1.ms", "inline.p1.withdraw_ms"),
            *("inline.p20.publications_per_s", "inline.p20.lines_per_s"),
            *("numpy.ms", "numpy.over_index", "numpy.over_inline"),
        ):
            value = report.value(f"{case}.{key}", SIZE)
            assert value is not None and value > 0, key
            assert report.growth(f"{case}.{key}")
        ours, theirs = (report.value(f"{case}.{key}", SIZE) for key in ("inline.p1.ms", "numpy.ms"))
        assert ours and theirs and report.value(f"{case}.numpy.over_inline", SIZE) == pytest.approx(theirs / ours)
        name = CASES[case].label
        assert any(note.startswith(f"{name}, {SIZE}: pairs are the same: index (") for note in report.notes)
    assert any("not installed: PostgreSQL" in note for note in report.notes)


@pytest.mark.extended
@pytest.mark.usefixtures("quick")
def test_postgres_is_measured_where_it_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    if peers.find_server() is None:
        pytest.skip("no PostgreSQL server here")
    monkeypatch.setattr(peers, "_PUBLICATIONS", 3)
    options = FamilyOptions((100, SIZE), engines=("index",), cases=("geometric",), batches=(1,), peer_sizes=(SIZE,))
    report = offers.run(options, lambda _: None)
    assert report.value("geometric.postgres.ms", 100) is None
    assert any("geometric, 100: not in PostgreSQL" in note for note in report.notes)
    ours, theirs = (report.value(f"geometric.{key}.ms", SIZE) for key in ("index.p1", "postgres"))
    assert ours and theirs and report.value("geometric.postgres.over_index", SIZE) == pytest.approx(theirs / ours)
    assert any(note.startswith("geometric, 500: pairs are the same: index (") for note in report.notes)


def test_batches_are_smaller_where_each_publication_has_many_matches() -> None:
    assert inline.batch_size(OffersData(CASES["proportional"], 1_000_000, 1, 0), 1_000) == 100
    assert inline.batch_size(OffersData(CASES["fixed"], 1_000_000, 1, 0), 1_000) == 1_000


def test_different_pairs_are_an_error() -> None:
    compared = Compared("here")
    compared.add("index", (3, np.array([[0, 5], [2, 7]])))
    compared.add("scan", (2, np.array([[0, 5]])))
    with pytest.raises(AssertionError, match=r"here: bad and index differ in 1 pairs, as \[\(2, 7\)\]"):
        compared.add("bad", (3, np.array([[0, 5]])))
    with pytest.raises(AssertionError, match="twice"):
        compared.add("twice", (1, np.array([[0, 5], [0, 5]])))


@pytest.mark.parametrize("case", ["marketplace", "places"])
def test_the_index_finds_the_pairs_of_mixed_constraints(case: str) -> None:
    given = verify.mixed(case, 300, 4, publications=60)
    assert len(given.publications) == 60 and len(given.subscriptions) == 300
    pairs = by_definition(given)
    assert len(pairs) > 5 and by_index(given) == pairs


def test_the_command_compares_all_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "PUBLICATIONS", 20)
    path = tmp_path / "agreement.json"
    arguments = [
        "bench",
        "offers",
        "--agreement",
        "--sizes",
        "50",
        "--cases",
        "places",
        "--engines",
        "definition,boxes",
    ]
    result = CliRunner().invoke(app, [*arguments, "--json", str(path)])
    assert result.exit_code == 0, result.output
    assert "places, 50: identical pairs: definition, boxes" in result.stdout
    keys = {line["key"] for line in json.loads(path.read_text())["figures"]}
    assert keys == {"places.pairs", "places.definition.s", "places.boxes.s"}


def test_ways_that_differ_make_the_report_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "WAYS", {"boxes": by_index, "nothing": lambda _: set()})
    report = verify.run(FamilyOptions((300,), cases=("places",)), lambda _: None)
    assert report.is_wrong and any("nothing misses" in note for note in report.notes)


def test_unknown_names_are_refused() -> None:
    for options in (
        FamilyOptions((10,), cases=("nonesuch",)),
        FamilyOptions((10,), engines=("nonesuch",)),
        FamilyOptions((10,), engines=("nonesuch",), is_agreement=True),
    ):
        with pytest.raises(UsageError, match="nonesuch"):
            offers.run(options, lambda _: None)
