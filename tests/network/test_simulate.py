"""`tidings simulate`: its files, its exit codes, and what it says of input that cannot be used."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tidings.cli.main import main
from tidings.network.payload_cache import Rules
from tidings.simulator.config import Config, Faults

CONFIG = """
overlay = "can"
brokers = 16
nodes = 200
cache_bytes = 200
plain_brokers = 0.2
[faults]
loss = 0.02
delay_ms = [1, 50]
restarts = 3
splits = 2
"""
POINTS = [{"id": f"s{i}", "point": [(37 * i) % 101, (53 * i) % 97]} for i in range(200)]
MESSAGES = [
    {
        "id": i,
        "at": 20 * (60 - i),
        "boxes": [[[i, 0], [i + 20, 50]], [[i, 40], [2**70, 60]]],
        "payload": f"p{i % 7}",
        "bytes": 90,
    }
    for i in range(60)
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("points.jsonl", POINTS)
    write("messages.jsonl", MESSAGES)
    (tmp_path / "c.toml").write_text(CONFIG)
    return tmp_path


def write(name, records):
    Path(name).write_text("".join(json.dumps(record) + "\n" for record in records))


def run(monkeypatch, *options):
    words = ["c.toml", "--points", "points.jsonl", "--messages", "messages.jsonl", "--out", "result.json", *options]
    monkeypatch.setattr("sys.argv", ["tidings", "simulate", *words])
    with pytest.raises(SystemExit) as stopped:
        main()
    return stopped.value.code or 0


def test_deliveries_are_those_of_enumeration(folder, monkeypatch):
    options = ["--deliveries", "d.jsonl", "--trace", "t.jsonl", "--picture", "p.svg"]
    assert run(monkeypatch, *options) == 0
    told = {message["id"]: [] for message in MESSAGES}
    for line in (folder / "d.jsonl").read_text().splitlines():
        record = json.loads(line)
        assert record["points"] and 0 <= record["broker"] < 16
        told[record["message"]] += record["points"]
    for message in MESSAGES:
        inside = [
            point["id"]
            for point in POINTS
            if any(
                all(low <= at <= high for low, at, high in zip(lo, point["point"], hi, strict=True))
                for lo, hi in message["boxes"]
            )
        ]
        assert sorted(told[message["id"]]) == sorted(inside)
    found = json.loads((folder / "result.json").read_text())
    assert (found["lost"], found["twice"], found["without_payload"]) == (0, 0, 0)
    lines = [json.loads(line) for line in (folder / "t.jsonl").read_text().splitlines()]
    sent = [line for line in lines if line["kind"] in ("message", "reply")]
    assert sum(line["bytes"] for line in sent) == found["overlay_bytes"]
    assert (folder / "p.svg").read_text().startswith("<svg")


def test_the_same_seed_gives_the_same_file(folder, monkeypatch):
    results = []
    for _ in range(2):
        assert run(monkeypatch, "--seed", "5") == 0
        results.append((folder / "result.json").read_bytes())
    assert results[0] == results[1]
    assert run(monkeypatch, "--seeds", "5:7") == 0
    both = json.loads((folder / "result.json").read_text())["runs"]
    assert both[0] == json.loads(results[0]) and both[1]["seed"] == 6 and both[1]["trace"] != both[0]["trace"]


def test_seeds_that_fail_are_named(folder, monkeypatch, capsys):
    (folder / "c.toml").write_text(CONFIG + "[rules]\nask_source = false\n")
    assert run(monkeypatch, "--seeds", "0:3") == 1
    said = capsys.readouterr().err
    assert "seed 0: " in said and "told without the payload" in said and "--seed 0" in said
    assert len(json.loads((folder / "result.json").read_text())["runs"]) == 3
    assert run(monkeypatch, "--seed", "0") == 1


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("overlay = 'ring'", "overlay is one of can, tree, btree, unicast, not 'ring'"),
        ("brokers = 0", "brokers is a whole number from 1"),
        ("brokers = true", "brokers is a whole number"),
        ("brokers = 300\nnodes = 200", "nodes = 200 are fewer than brokers = 300"),
        ("borkers = 3", "unknown setting borkers; there are: overlay, brokers"),
        ("[faults]\nloss = nan", "faults.loss is a number from 0 to 0.9"),
        ("[faults]\ndelay_ms = [5, 1]", "faults.delay_ms is [least, most]"),
        ("[faults]\nfires = 1", "unknown setting faults.fires"),
        ("[rules]\nask_source = 1", "rules.ask_source is true or false"),
        ("rules = 3", "[faults] and [rules] are tables"),
        ("overlay = ", "is not TOML"),
        ("overlay = 'btree'", "the overlay btree is for points of one coordinate; these have 2"),
    ],
)
def test_bad_configs(folder, monkeypatch, capsys, config, said):
    (folder / "c.toml").write_text(config)
    assert run(monkeypatch) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "line", "said"),
    [
        ("points", '{"id": 1, "point": [1, 2', "points.jsonl, line 1: "),
        ("points", '{"id": 1, "point": [1, 2.5]}', "line 1: "),
        ("points", '{"id": 1, "point": [1, NaN]}', "line 1: "),
        ("points", '{"id": 1, "point": []}', "points have 1 to 48 coordinates, not 0"),
        ("points", '{"id": 1, "point": [1, 18446744073709551616]}', "coordinates are integers of 64 bits"),
        ("points", '{"id": 1, "point": [1, 2]}\n{"id": 1, "point": [3, 4]}', "the id 1 is there twice"),
        (
            "points",
            '{"id": 1, "point": [1, 2]}\n{"id": 2, "point": [3]}',
            "line 2: 1 coordinates, where the first has 2",
        ),
        ("messages", '{"id": 1, "at": -1, "boxes": []}', "at is a time in milliseconds"),
        ("messages", '{"id": 1, "at": 1, "boxes": [[[1], [2]]]}', "line 1: 1 coordinates, where the first has 2"),
        ("messages", '{"id": 1, "at": 1, "boxes": [[[1, 2]]]}', "line 1: "),
        ("messages", '{"id": 1, "at": 1, "boxes": [], "bytes": -5}', "bytes is a size"),
        ("messages", '{"id": 1, "boxes": []}', "line 1: "),
    ],
)
def test_bad_lines(folder, monkeypatch, capsys, name, line, said):
    (folder / f"{name}.jsonl").write_text(line + "\n")
    assert run(monkeypatch) == 2
    assert said in capsys.readouterr().err


def test_options_that_do_not_go_together(folder, monkeypatch, capsys):
    for options, said in [
        (["--seeds", "0:2", "--deliveries", "d.jsonl"], "go with --seed"),
        (["--seeds", "0:2", "--seed", "1"], "give one of them"),
        (["--seeds", "2:2"], "such as 0:50"),
        (["--picture", "p.png"], "name of an SVG file"),
    ]:
        assert run(monkeypatch, *options) == 2
        assert said in capsys.readouterr().err


@pytest.mark.parametrize("overlay", ["can", "tree", "unicast"])
def test_nothing_to_do(folder, monkeypatch, overlay):
    (folder / "c.toml").write_text(CONFIG.replace("can", overlay))
    for points, messages in [([], MESSAGES), (POINTS, []), ([], [])]:
        write("points.jsonl", points)
        write("messages.jsonl", messages)
        assert run(monkeypatch, "--deliveries", "d.jsonl") == 0
        assert (folder / "d.jsonl").read_text() == ""


def test_settings_and_figures_are_documented(folder, monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "network.md").read_text()
    assert run(monkeypatch) == 0
    figures = page.partition("\n## Figures")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \|", figures, re.MULTILINE)
    assert [name for row in rows for name in re.findall(r"`(\w+)`", row)] == [
        *json.loads((folder / "result.json").read_text())
    ]
    settings = page.partition("\n## Settings")[2].partition("\n## ")[0]
    shown = {
        name: json.loads(value) for name, value in re.findall(r"^\| `(\w+)` \| `(.*?)` \|", settings, re.MULTILINE)
    }
    defaults = {**vars(Config()), **vars(Faults()), **vars(Rules())}
    assert shown == json.loads(
        json.dumps({name: defaults[name] for name in defaults if name not in ("faults", "rules")})
    )
