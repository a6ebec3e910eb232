"""An engine that crashes anywhere, and is made again from its folder, tells what one tells that does not."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.live.engine import DurableEngine, check
from tidings.live.journal import Entry, Journal
from tidings.model.errors import UsageError
from tidings.pipeline.live import Live, Output
from tidings.pipeline.stream_lines import blocks_of, place_of, runs_of
from tidings.sources import Record
from tidings.testing import FAMILY_WORKLOADS, Workload, with_transactions
from tidings.testing.workload import chunks


def blocks(lines: list[bytes], first: int) -> list[bytes]:
    return blocks_of(runs_of(Record("p", place_of(first + n), 0, line) for n, line in enumerate(lines)))


def said(found: Output) -> list[object]:
    return [found.told.lines(), found.answers, [entry.line() for entry in found.refused]]


@settings(max_examples=60)
@given(
    st.one_of(*(with_transactions(workloads) for workloads in FAMILY_WORKLOADS.values())),
    st.lists(
        st.tuples(st.sampled_from(["go on", "untold", "torn", "told", "folded"]), st.integers(1, 30)), max_size=30
    ),
    st.sampled_from([1, 3, 10]),
)
def test_crashes_change_nothing(workload: Workload, fates: list[tuple[str, int]], size: int) -> None:
    wishes = [line for line in workload.subscription_lines() if b'"after"' not in line]
    batches = [(wishes, []), *(([], lines) for lines in chunks(workload.change_lines(), [size]))]
    batches = [(blocks(events, 0), blocks(list(lines), size * n)) for n, (events, lines) in enumerate(batches)]
    plain = Live(workload.catalog)
    wanted = [said(plain.apply(plain.read(changes, events))) for events, changes in batches]
    with TemporaryDirectory() as name:
        folder = Path(name)
        told: dict[int, list[object]] = {}

        def tell(batch: int, found: Output) -> None:
            assert batch not in told or told[batch] == said(found), "told again in other words"
            told[batch] = said(found)

        engine = DurableEngine(folder, workload.catalog_sql)
        for number, (events, changes) in enumerate(batches, 1):
            found = engine.run(changes, events, {"at": number})
            fate, cut = fates[number - 1] if number <= len(fates) else ("go on", 0)
            if fate == "torn":
                # The machine stopped while the micro-batch was being written.
                engine.close()
                (path,) = (folder / "journal").glob("journal-*")
                whole = path.read_bytes()
                path.write_bytes(whole[: len(whole) - cut])
                engine = DurableEngine(folder, workload.catalog_sql)
                engine.restore(tell)
                assert engine.offsets.get("at", 0) == number - 1 == engine.batch
                found = engine.run(changes, events, {"at": number})
            if fate != "untold":
                tell(number, found)
            if fate in ("go on", "folded"):
                engine.settle()
                if fate == "folded":
                    engine._fold()
                continue
            engine.close()
            engine = DurableEngine(folder, workload.catalog_sql)
            engine.restore(tell)
            assert engine.offsets == {"at": number}
        engine.close()
        assert [told[number] for number in sorted(told)] == wanted


def test_only_the_last_micro_batch_is_told_again_and_only_if_the_sink_may_lack_it(tmp_path: Path) -> None:
    again: list[int] = []
    for settles in (True, True, False):
        engine = DurableEngine(tmp_path, "CREATE TABLE t (id BIGINT PRIMARY KEY);")
        engine.restore(lambda batch, _: again.append(batch))
        engine.run([], [], {})
        if settles:
            engine.settle()
        engine.close()
    engine = DurableEngine(tmp_path, "CREATE TABLE t (id BIGINT PRIMARY KEY);")
    engine.restore(lambda batch, _: again.append(batch))
    engine.close()
    assert again == [3]


def test_a_journal_with_a_hole_is_refused(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    journal.append(Entry(1, {}, [], []))
    journal.append(Entry(3, {}, [], []))
    journal.close()
    with pytest.raises(UsageError, match="has no micro-batch 2"):
        Journal(tmp_path / "journal")


def test_a_checkpoint_of_another_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "engine.json").write_text(json.dumps({"format": 99, "catalog": "", "by_commit": True}))
    with pytest.raises(UsageError, match="is of format 99"):
        check(tmp_path, "CREATE TABLE t (id BIGINT PRIMARY KEY);")
    (tmp_path / "engine.json").write_text("{")
    with pytest.raises(UsageError, match="is damaged"):
        check(tmp_path, "CREATE TABLE t (id BIGINT PRIMARY KEY);")
