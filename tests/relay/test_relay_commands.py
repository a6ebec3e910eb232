"""`tidings plan` and `tidings relay run` as users run them: results as another evaluator has them, and clear refusals."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import outside_evaluator
import pytest

from in_process import tidings

VIEWS = [
    "//item[/name{val}]/price{val}",
    "//item/name{val}",
    "//item/price{val}",
    "//item/price{val}",
    '//item[/name="gold"]/price{val}',
    '//item[/price{val}]/name="gold"',
    '//item[/name="gold"{id}]/note{cont}',
    "//item/note{cont}",
    "//item{id}/@id{val}",
    '//item[/@id="i2"]/name{val}',
    "/site//item[//b{val}]/name{val,id}",
    "/site/item{id}",
    "//b{val}",
    "//item[/note{val}][/name]/price{id}",
    '//item[/name="say ""hi"""]{id}',
    "//nothing[/here]{id}",
]


def tidings_itself(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The same in a process of its own."""
    command = [sys.executable, "-m", "tidings.cli.main", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, timeout=120)


def item(rng: random.Random) -> str:
    name = rng.choice(["gold", "tin", 'say "hi"', ""])
    note = rng.choice(["", "<note>plain</note>", "<note>a <b>big</b> &amp; <b x='1'>red</b> one</note>"])
    price = "" if rng.random() < 0.2 else f"<price>{rng.randint(1, 3)}</price>"
    inner = f"<item id='i9'><name>{name}</name></item>" if rng.random() < 0.2 else ""
    return f"<item id='i{rng.randint(1, 3)}'><name>{name}</name>{price}{note}{inner}</item>"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = random.Random(4)
    (tmp_path / "documents").mkdir()
    for number in range(8):
        text = f"<site>{''.join(item(rng) for _ in range(number))}</site>"
        (tmp_path / "documents" / f"{number}.xml").write_text(text)
    lines = [{"id": f"v{n}", "pattern": pattern} for n, pattern in enumerate(VIEWS * 3)]
    for place, line in enumerate(lines):
        if place % 3 == 1:
            line["site"] = f"s{place % 4}"
    (tmp_path / "views.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    sites = [{"id": f"s{n}", "capacity": 2 + n, "x": n / 4, "y": 0.5} for n in range(4)]
    (tmp_path / "sites.jsonl").write_text("".join(json.dumps(site) + "\n" for site in sites))
    return tmp_path


def lines_of(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_results_are_those_of_another_evaluator(folder: Path) -> None:
    (folder / "documents" / "5b.xml").write_text("<site><item>")
    arguments = ["--views", "views.jsonl", "--documents", "documents"]
    done = tidings_itself(folder, "plan", *arguments, "--sites", "sites.jsonl", "--capacity", "3", "--out", "plan.json")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "views      48" in done.stderr
    plan = json.loads((folder / "plan.json").read_text())
    _check_plan(plan, lines_of(folder / "views.jsonl"))
    done = tidings_itself(folder, "relay", "run", "plan.json", *arguments, "--out", "results.jsonl")
    assert done.returncode == 0, done.stderr
    expected = []
    for number in range(8):
        root = outside_evaluator.tree((folder / "documents" / f"{number}.xml").read_text())
        for view in sorted(lines_of(folder / "views.jsonl"), key=lambda view: view["id"]):
            if rows := outside_evaluator.evaluate(view["pattern"], root):
                expected.append({"view": view["id"], "document": f"{number}.xml", "rows": rows})
    assert lines_of(folder / "results.jsonl") == expected
    assert len(expected) > 200
    refused = lines_of(folder / "results.jsonl.quarantine.jsonl")
    assert [line["document"] for line in refused] == ["5b.xml"]
    assert "not XML" in refused[0]["reason"]


def _check_plan(plan: dict[str, Any], views: list[dict[str, Any]]) -> None:
    """Levels rise from the publisher, and no site feeds more views elsewhere than it may."""
    site = {view["id"]: view.get("site", view["id"]) for view in views}
    assert plan["views"].keys() == site.keys()
    fed: Counter[str] = Counter()
    for id, entry in plan["views"].items():
        levels = [plan["views"][source]["level"] for source in entry["inputs"] if source != "publisher"]
        assert entry["level"] == 1 + max(levels, default=0)
        fed.update(site[source] for source in entry["inputs"] if source != "publisher" and site[source] != site[id])
    assert all(count <= (2 + int(name[1:]) if name.startswith("s") else 3) for name, count in fed.items())
    feeds = sum(entry["inputs"] == ["publisher"] for entry in plan["views"].values())
    assert plan["publisher"] == {"feeds": feeds}
    assert feeds < len(views) / 2
    assert 0 <= plan["gap"] <= 0.005
    assert plan["bound"] <= plan["use"]


def test_rows_and_documents_together(folder: Path) -> None:
    (folder / "catalog.sql").write_text("CREATE TABLE t (id BIGINT PRIMARY KEY, kind TEXT, price DOUBLE);")
    rows = [{"id": n, "kind": "ab"[n % 2], "price": n / 2} for n in range(6)]
    text = "".join(json.dumps({"table": "t", "row": row}) + "\n" for row in rows)
    (folder / "documents" / "rows.jsonl").write_text(text)
    with (folder / "views.jsonl").open("a") as views:
        for id, sql in (
            ("r1", "SELECT * FROM t WHERE price >= 1"),
            ("r2", "SELECT id, price FROM t WHERE kind = 'a' AND price >= 1"),
            ("r3", "SELECT kind FROM t WHERE price BETWEEN 1 AND 2"),
        ):
            views.write(json.dumps({"id": id, "sql": sql}) + "\n")
    arguments = ["--views", "views.jsonl", "--documents", "documents", "--catalog", "catalog.sql"]
    done = tidings(folder, "plan", *arguments, "--out", "plan.json")
    assert done.returncode == 0, done.stderr
    plan = json.loads((folder / "plan.json").read_text())["views"]
    assert (plan["r2"]["inputs"], plan["r3"]["inputs"]) == (["r1"], ["r1"])
    done = tidings(folder, "relay", "run", "plan.json", *arguments, "--out", "results.jsonl")
    assert done.returncode == 0, done.stderr
    told = {
        line["view"]: line["rows"] for line in lines_of(folder / "results.jsonl") if line["document"] == "rows.jsonl"
    }
    assert told == {
        "r1": [[n, "ab"[n % 2], n / 2] for n in range(2, 6)],
        "r2": [[2, 1.0], [4, 2.0]],
        "r3": [["a"], ["b"]],
    }
    done = tidings(folder, "plan", *arguments[:4], "--out", "plan.json")
    assert (done.returncode, "--catalog" in done.stderr) == (2, True)


PLAIN = ("views.jsonl", '{"id": "v", "pattern": "//a{id}"}')


@pytest.mark.parametrize(
    ("change", "words", "reason"),
    [
        (("views.jsonl", '{"id": "v", "pattern": "//a[/b{val}"}'), (), "line 1: the pattern of view 'v' is refused: "),
        (("views.jsonl", "\n"), (), "no views in views.jsonl"),
        (
            ("views.jsonl", '{"id": "v", "pattern": "//a{id}", "site": "s9"}'),
            (),
            "at the site 's9', which the sites do not",
        ),
        (("sites.jsonl", '{"id": "s0", "capacity": 0}'), (), "not a whole number from 1 on"),
        (("sites.jsonl", '{"id": "s0", "bandwidth": 0}'), (), "\"bandwidth\" of site 's0' is not a number above 0"),
        (PLAIN, ("--bandwidth", "0"), "--bandwidth 0.0: bytes a second, more than 0"),
        (PLAIN, ("--rate", "inf"), "--rate inf: documents a second, more than 0"),
        (PLAIN, ("--slack", "0.9"), "--slack 0.9: capacities times 1 or more"),
        (PLAIN, ("--alpha", "0"), "--alpha 0: without --beta, nothing counts"),
        (PLAIN, ("--beta", "nan"), "weights are numbers from 0 on"),
        (
            PLAIN,
            ("--capacity", "0"),
            "--capacity 0: a view that may feed nobody",
        ),
        (
            ("views.jsonl", '{"id": "v", "pattern": "//a{id}"}\n{"id": "w", "pattern": "//b{id}"}'),
            ("--publisher-capacity", "1"),
            "by the rewritings considered it must feed at least 2; with 2 there is a plan: --publisher-capacity 2",
        ),
        (PLAIN, ("--picture", "plan.gif"), "ends in .svg or .png"),
    ],
)
def test_mistakes_are_named(folder: Path, change: tuple[str, str], words: tuple[str, ...], reason: str) -> None:
    name, text = change
    (folder / name).write_text(text)
    arguments = ["--views", "views.jsonl", "--sites", "sites.jsonl", "--documents", "documents", "--out", "plan.json"]
    done = tidings(folder, "plan", *arguments, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert reason in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (folder / "plan.json").exists()


def test_results_do_not_replace_documents(folder: Path) -> None:
    arguments = ["--views", "views.jsonl", "--documents", "documents"]
    done = tidings(folder, "plan", *arguments, "--out", "documents/1.xml")
    assert (done.returncode, "which is read as a whole" in done.stderr) == (2, True)
    assert (folder / "documents" / "1.xml").read_text().startswith("<site>")


def test_a_view_may_have_the_name_of_a_site_and_a_capacity_any_size(folder: Path) -> None:
    views = [
        {"id": "s0", "pattern": "//item[/name{val}]/price{val}"},
        {"id": "y", "pattern": "//b{cont}", "site": "s0"},
    ]
    views += [{"id": f"p{n}", "pattern": '//item[/name="gold"]/price{val}'} for n in range(2)]
    views += [{"id": f"b{n}", "pattern": "//b{val}"} for n in range(2)]
    (folder / "views.jsonl").write_text("".join(json.dumps(view) + "\n" for view in views))
    (folder / "sites.jsonl").write_text('{"id": "s0", "capacity": 99999999999999999999999}\n')
    arguments = ["--views", "views.jsonl", "--documents", "documents", "--sites", "sites.jsonl", "--out", "plan.json"]
    for capacity in ("1", "99999999999999999999999"):
        done = tidings(folder, "plan", *arguments, "--capacity", capacity, "--publisher-capacity", "9" * 30)
        assert done.returncode == 0, done.stderr
        plan = json.loads((folder / "plan.json").read_text())
        assert plan["views"]["p0"]["inputs"] == ["s0"]


def test_a_plan_for_other_views_leaves_nothing_behind(folder: Path) -> None:
    (folder / "plan.json").write_text('{"views": {"other": {"inputs": ["publisher"], "level": 1}}}')
    done = tidings(
        folder, "relay", "run", "plan.json", "--views", "views.jsonl", "--documents", "documents", "--out", "r.jsonl"
    )
    assert (done.returncode, "it was made for other" in done.stderr) == (2, True)
    assert list(folder.glob("r.jsonl*")) == []
