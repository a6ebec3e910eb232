"""The notice log says what a plain list of notices says, wherever retention, readers and crashes come in between."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.model.errors import UsageError
from tidings.model.notification import (
    NO_NOTIFICATIONS,
    NotificationBatch,
    change_tail,
    delete_change,
    insert_change,
    snapshot_tail,
    update_change,
)
from tidings.model.row_bag import RowBag
from tidings.server.log import LogReader, LogWriter, net
from tidings.server.log.segment_layout import segment_path, segment_starts

IDS = ["t/a", "t/b", "t/c", 'u/"quoted"', "u/ä"]
EVERYTHING = 10**18
SEGMENT_BYTES = 4096


def batch_of(notices):
    """notices: [(seq, id, is_snapshot, tail)]. Equal tails are shared, as the engine does."""
    if not notices:
        return NO_NOTIFICATIONS
    tails = list(dict.fromkeys(tail for *_, tail in notices))
    return NotificationBatch.of(
        np.array([seq for seq, *_ in notices]),
        pa.array([id for _, id, *_ in notices], pa.string()),
        np.array([tails.index(tail) for *_, tail in notices]),
        tails,
        np.array([is_snapshot for _, _, is_snapshot, _ in notices]),
    )


class Life:
    """One subscription from its creation to its end, told in a plain list."""

    def __init__(self, id):
        self.id = id
        self.rows = Counter()
        self.told = []
        """(seq, kind, tail), kind being snapshot, change or end."""
        self.views = {}
        """Rows by seq."""

    def tell(self, seq, is_snapshot, rows, changes):
        self.rows = rows
        tail = snapshot_tail(seq, sorted(rows.elements())) if is_snapshot else change_tail(seq, ", ".join(changes))
        self.told.append((seq, "snapshot" if is_snapshot else "change", tail))
        self.views[seq] = Counter({row.encode(): count for row, count in rows.items()})
        return seq, self.id, is_snapshot, tail

    def after(self, seq):
        return [notice for notice in self.told if notice[0] > seq]


class Model:
    """Subscriptions by chance: makes micro-batches, and keeps everything."""

    def __init__(self):
        self.seq = self.batch = 0
        self.lives = {}
        """The latest life of each id."""

    def run(self, steps):
        """A micro-batch: (told, ended). steps: [(index of the id, what to do, a value)]."""
        told, ended = [], []
        for at, what, value in steps:
            self.seq += 1
            id = IDS[at]
            life = self.lives.get(id)
            if life is None or life.told[-1][1] == "end":
                life = self.lives[id] = Life(id)
                told.append(life.tell(self.seq, True, Counter(_rows(value)), []))
            elif what == "drop":
                life.told.append((self.seq, "end", ""))
                ended.append((id, self.seq))
            elif what == "edit":
                told.append(life.tell(self.seq, True, Counter(_rows(value)), []))
            else:
                told.append(life.tell(self.seq, False, *_changed(life.rows, value)))
        self.batch += 1
        return told, ended

    def append(self, writer, steps):
        told, ended = self.run(steps)
        return writer.append(self.batch, self.seq, self.batch * 1_000_000, batch_of(told), ended)


def _row(value):
    return json.dumps({"k": value % 7, "v": value})


def _rows(value):
    return [_row(value + i // 2) for i in range(value % 4)]


def _changed(rows, value):
    """(rows, changes) after an update or delete of one row, if there is any, and an insert."""
    rows, held, changes = Counter(rows), sorted(rows.elements()), []
    if held:
        old = held[value % len(held)]
        rows -= Counter([old])
        if value % 3:
            rows[_row(value)] += 1
            changes.append(update_change(old, _row(value)))
        else:
            changes.append(delete_change(old))
    if value % 2 or not changes:
        rows[_row(value + 1)] += 1
        changes.append(insert_change(_row(value + 1)))
    return rows, changes


def kind(record):
    return "end" if record.is_end else "snapshot" if record.is_snapshot else "change"


def check_log(log, model, *, is_whole):
    """Everything that can be asked. is_whole: nothing has been removed, so nothing may have expired."""
    assert (log.batch, log.passed) == (model.batch, model.seq)
    living = {id for id, life in model.lives.items() if life.told[-1][1] != "end"}
    assert {id for id, _ in log.names()} == living
    assert len(log) == len(living)
    for id in IDS:
        life, number = model.lives.get(id), log.number(id)
        if number is None:
            assert life is None or (id not in living and not is_whole)
            continue
        assert log.name(number) == id
        assert log.is_ended(number) == (id not in living)
        check_subscription(log, number, life, is_whole=is_whole)


def check_subscription(log, number, life, *, is_whole):
    last = life.told[-1][0]
    assert log.head_seq(number) == last
    assert log.since(number, last) == []
    if (now := log.view(number)) is None:
        # Retention writes no base for a subscription that has ended.
        assert log.is_ended(number)
        assert not is_whole
    else:
        assert now.texts == list(life.views.values())[-1]
    has_expired = False
    for after in sorted({0, *(seq for seq, *_ in life.told)}, reverse=True):
        found = log.since(number, after)
        if found is None:
            assert not is_whole
            has_expired = True
            continue
        assert not has_expired, "something older is there, and something newer is not"
        assert [(record.seq, kind(record), record.tail.decode()) for record in found] == life.after(after)
        assert log.since(number, after, limit=2) == found[:2]
    is_gone = False
    for seq, rows in reversed(life.views.items()):
        view = log.view(number, at=seq)
        if view is None:
            is_gone = True
            assert not is_whole
        else:
            assert not is_gone
            assert view.texts == rows
            assert view.seq == seq
    assert log.view(number, at=life.told[0][0] - 1) is None


STEP = st.tuples(
    st.integers(0, len(IDS) - 1),
    st.sampled_from(["change", "change", "change", "change", "edit", "drop"]),
    st.integers(0, 40),
)
ACTION = st.one_of(
    st.lists(STEP, max_size=12),
    st.lists(STEP, min_size=6, max_size=12),
    st.sampled_from(["retain by size", "retain by age", "open", "follow", "restart"]),
)


@given(st.lists(ACTION, max_size=40))
@settings(max_examples=150, deadline=None)
def test_the_log_is_a_list_of_notices(actions):
    with tempfile.TemporaryDirectory() as name:
        folder, model = Path(name) / "log", Model()
        writer = LogWriter(folder, segment_bytes=SEGMENT_BYTES)
        follower, told, removed = LogReader(folder), set(), 0
        for action in actions:
            if action == "retain by size":
                removed += writer.retain(EVERYTHING, 2 * SEGMENT_BYTES, 0)
            elif action == "retain by age":
                removed += writer.retain(3.0, EVERYTHING, (model.batch + 1) * 1_000_000)
            elif action == "open":
                check_log(LogReader(folder), model, is_whole=not removed)
            elif action == "follow":
                numbers = follower.refresh(writer.end).tolist()
                assert len(set(numbers)) == len(numbers)
                assert {id for id in told if follower.number(id) is not None} <= {
                    follower.name(number) for number in numbers if follower.heads.slot(number) is not None
                }
                assert follower.refresh().tolist() == []
                told.clear()
                check_log(follower, model, is_whole=not removed)
            elif action == "restart":
                writer.close()
                writer = LogWriter(folder, segment_bytes=SEGMENT_BYTES)
            else:
                told |= {IDS[at] for at, *_ in action}
                assert model.append(writer, action) == writer.end
        follower.refresh()
        check_log(follower, model, is_whole=not removed)
        check_log(LogReader(folder), model, is_whole=not removed)
        writer.close()


def grown(folder, batches, *, seed=1):
    """(writer, model) of a log with several segments."""
    rng, model = np.random.default_rng(seed), Model()
    writer = LogWriter(folder, segment_bytes=SEGMENT_BYTES)
    for _ in range(batches):
        model.append(writer, random_steps(rng))
    return writer, model


def random_steps(rng):
    kinds = ["change"] * 8 + ["edit", "drop"]
    return [(int(rng.integers(5)), kinds[rng.integers(10)], int(rng.integers(40))) for _ in range(6)]


def test_a_block_that_is_not_whole_is_cut_off(tmp_path):
    writer, model = grown(tmp_path / "log", 6)
    begin = writer.end
    writer.sync()
    kept = Model()
    kept.__dict__.update(grown(tmp_path / "same", 6)[1].__dict__)
    told, ended = model.run(random_steps(np.random.default_rng(9)))
    end = writer.append(model.batch, model.seq, 5_000_000, batch_of(told), ended)
    start = segment_starts(tmp_path / "log")[-1]
    assert start < begin, "the block is in the segment in which the one before it is"
    whole = segment_path(tmp_path / "log", start).read_bytes()
    for cut in range(begin - start, end - start):
        for damaged in (
            whole[:cut] + bytes(len(whole) - cut),
            whole[:cut] + bytes([whole[cut] ^ 1]) + whole[cut + 1 :],
        ):
            if damaged == whole:
                continue
            folder = tmp_path / "damaged"
            shutil.copytree(tmp_path / "log", folder)
            segment_path(folder, start).write_bytes(damaged)
            reader = LogReader(folder)
            again = LogWriter(folder, segment_bytes=SEGMENT_BYTES)
            assert (again.end, again.batch) == (begin, model.batch - 1)
            assert segment_path(folder, start).read_bytes()[begin - start :].strip(b"\0") == b""
            if cut % 16 == 0:
                check_log(reader, kept, is_whole=True)
                assert again.append(model.batch - 1, 1, 1, NO_NOTIFICATIONS) == begin, "a repeat is passed over"
                assert again.append(model.batch, model.seq, 5_000_000, batch_of(told), ended) == end
                reader.refresh()
                check_log(reader, model, is_whole=True)
                check_log(LogReader(folder), model, is_whole=True)
            again.close()
            shutil.rmtree(folder)


@pytest.mark.parametrize("seed", range(3))
def test_a_crash_while_old_segments_are_removed(tmp_path, seed):
    writer, model = grown(tmp_path / "log", 40, seed=seed)
    shutil.copytree(tmp_path / "log", tmp_path / "before")
    begin = writer.end
    count = writer.retain(EVERYTHING, 2 * SEGMENT_BYTES, 0)
    assert count >= 2
    check_log(LogReader(tmp_path / "log"), model, is_whole=False)
    gone = segment_starts(tmp_path / "before")[:count]
    # All bases are written, and none, one, .. of the old segments are gone.
    for removed in range(count + 1):
        check_after_crash(tmp_path, model, gone[removed:], None)
    # Bases are written in part: the old segments are all there.
    newest = segment_starts(tmp_path / "log")[-1]
    for cut in range(max(begin, newest + 72), writer.end, 37):
        check_after_crash(tmp_path, model, gone, cut)


def check_after_crash(tmp_path, model, restored, cut):
    """Opens what a crash leaves: the log after retention, with some segments not yet removed and the end not yet written."""
    folder = tmp_path / "crashed"
    shutil.copytree(tmp_path / "log", folder)
    for start in restored:
        shutil.copy(segment_path(tmp_path / "before", start), segment_path(folder, start))
    if cut is not None:
        start = segment_starts(folder)[-1]
        with segment_path(folder, start).open("r+b") as file:
            size = file.seek(0, 2)
            file.seek(cut - start)
            file.write(bytes(size - (cut - start)))
    (folder / "notices-0000000000000000009.partial").write_bytes(b"half a segment")
    follower = LogReader(folder)
    check_log(follower, model, is_whole=False)
    writer = LogWriter(folder, segment_bytes=SEGMENT_BYTES)
    assert not list(folder.glob("*.partial"))
    assert writer.append(model.batch, 1, 1, NO_NOTIFICATIONS) == writer.end == follower.end
    writer.retain(EVERYTHING, 2 * SEGMENT_BYTES, 0)
    follower.refresh()
    check_log(follower, model, is_whole=False)
    check_log(LogReader(folder), model, is_whole=False)
    assert not {*restored} & {*segment_starts(folder)}
    writer.close()
    shutil.rmtree(folder)


def test_a_reader_that_is_behind_by_whole_segments_starts_anew(tmp_path):
    writer, model = grown(tmp_path, 5)
    reader = LogReader(tmp_path)
    numbers = {id: (model.lives[id], reader.number(id)) for id in model.lives}
    rng = np.random.default_rng(5)
    for _ in range(60):
        model.append(writer, random_steps(rng))
        writer.retain(EVERYTHING, 2 * SEGMENT_BYTES, 0)
    told = reader.refresh().tolist()
    check_log(reader, model, is_whole=False)
    for id, (life, number) in numbers.items():
        assert number in told
        # A number never becomes another subscription's.
        assert (reader.number(id) == number) == (model.lives[id] is life)
        if model.lives[id] is not life:
            assert reader.is_ended(number)


def test_numbers_of_ended_subscriptions_are_used_again_but_not_by_readers(tmp_path):
    writer, model = LogWriter(tmp_path, segment_bytes=SEGMENT_BYTES), Model()
    reader, seen = LogReader(tmp_path), set()
    for _ in range(200):
        model.append(writer, [(0, "drop", 3)])
        writer.retain(0, 0, 0)
        reader.refresh()
        if (number := reader.number(IDS[0])) is not None and not reader.is_ended(number):
            seen.add(number)
    assert len(seen) == 100
    assert len(reader.heads.names) < 40
    oldest = min(seen)
    assert (reader.since(oldest, 0), reader.view(oldest), reader.head_seq(oldest)) == (None, None, -1)
    assert reader.is_ended(oldest)
    with pytest.raises(KeyError):
        reader.name(oldest)


def test_an_id_that_ends_and_comes_again_in_one_micro_batch(tmp_path):
    writer, model = LogWriter(tmp_path), Model()
    model.append(writer, [(0, "new", 3), (1, "new", 2), (0, "change", 5)])
    first = LogReader(tmp_path).number(IDS[0])
    model.append(
        writer, [(0, "change", 4), (0, "drop", 0), (0, "new", 6), (0, "change", 7), (0, "drop", 0), (0, "new", 9)]
    )
    reader = LogReader(tmp_path)
    check_log(reader, model, is_whole=True)
    assert [record.seq for record in reader.since(first, 0)] == [1, 3, 4, 5]
    assert reader.is_ended(first)
    model.append(writer, [(0, "drop", 0), (1, "drop", 0)])
    assert reader.refresh().tolist() == sorted(map(reader.number, IDS[:2]))
    check_log(reader, model, is_whole=True)


def test_a_full_disk_leaves_nothing_behind(tmp_path):
    code = """
import resource, sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from tidings.model.errors import RunError
from test_log import Model, LogWriter, LogReader, check_log
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
folder, model = Path(sys.argv[1]), Model()
writer = LogWriter(folder, segment_bytes=16_384)
model.append(writer, [(0, "new", 3), (1, "new", 2)])
end, told = writer.end, (model.batch, model.seq)
import numpy as np
from test_log import batch_of, snapshot_tail
large = batch_of([(3, "t/c", True, snapshot_tail(3, ['"' + "x" * 30_000 + '"']))])
try:
    writer.append(2, 3, 1, large)
except RunError as error:
    print(error)
assert writer.end == end
check_log(LogReader(folder), model, is_whole=True)
model.append(writer, [(0, "change", 3), (2, "new", 2)])
check_log(LogReader(folder), model, is_whole=True)
print("went on")
"""
    command = [sys.executable, "-c", code, str(tmp_path / "log"), str(Path(__file__).parent)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert "cannot write" in said[0]
    assert "Make room" in said[0]
    assert said[1:] == ["went on"]


WRITER = """
import sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
import numpy as np
from test_log import EVERYTHING, SEGMENT_BYTES, Model, LogWriter, batch_of, random_steps
writer, model = LogWriter(Path(sys.argv[1]), segment_bytes=SEGMENT_BYTES), Model()
rng = np.random.default_rng(7)
for _ in range(100_000):
    told, ended = model.run(random_steps(rng))
    writer.append(model.batch, model.seq, model.batch, batch_of(told), ended)
    if model.batch % 50 == 0:
        writer.retain(EVERYTHING, 40 * SEGMENT_BYTES, 0)
        print(writer.batch, flush=True)
"""


def test_a_writer_that_is_killed_goes_on_and_a_reader_sees_whole_micro_batches(tmp_path):
    folder, reader, model, rng = tmp_path / "log", None, Model(), np.random.default_rng(7)
    for round in range(4):
        command = [sys.executable, "-c", WRITER, str(folder), str(Path(__file__).parent)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            while int(writer.stdout.readline()) < 150 * (round + 1):
                if reader is None:
                    reader = LogReader(folder)
                reader.refresh()
            writer.send_signal(signal.SIGKILL)
        reader.refresh()
        # The same seed makes the same micro-batches: those that the log has are repeated, and passed over.
        while model.batch < reader.batch:
            model.run(random_steps(rng))
        check_log(reader, model, is_whole=False)
        again = LogWriter(folder, segment_bytes=SEGMENT_BYTES)
        assert (again.batch, again.passed, again.epoch) == (reader.batch, reader.passed, reader.epoch)
        again.close()
        check_log(LogReader(folder), model, is_whole=False)


def test_epochs(tmp_path):
    with pytest.raises(UsageError, match="no notice log"):
        LogReader(tmp_path / "a")
    first, other = LogWriter(tmp_path / "a"), LogWriter(tmp_path / "b")
    assert len(first.epoch) == 8
    assert first.epoch != other.epoch
    assert LogReader(tmp_path / "a").epoch == LogWriter(tmp_path / "a").epoch == first.epoch


def test_a_view_that_moved_is_kept_with_its_texts_and_seq(tmp_path):
    writer = LogWriter(tmp_path, segment_bytes=SEGMENT_BYTES)
    row = '{"k":  1, "v": 1.50}'
    writer.append(1, 1, 1, batch_of([(1, "t/a", True, snapshot_tail(1, [row, row]))]))
    for batch in range(2, 100):
        notice = (
            batch,
            "t/b",
            batch == 2,
            snapshot_tail(batch, []) if batch == 2 else change_tail(batch, insert_change("{}")),
        )
        writer.append(batch, batch, batch, batch_of([notice]))
    assert writer.retain(EVERYTHING, SEGMENT_BYTES, 0) > 0
    reader = LogReader(tmp_path)
    number = reader.number("t/a")
    assert reader.view(number).rows() == [row.encode()] * 2
    assert (reader.since(number, 1), reader.since(number, 0), reader.head_seq(number)) == ([], None, 1)


def bag(*rows):
    found = RowBag()
    found.fold_text(snapshot_tail(1, rows).encode())
    return found


def test_net_changes():
    a1, a2, b1, c1 = ('{"k": "a", "v": 1}', '{"k": "a", "v": 2}', '{"k": "b", "v": 1}', '{"k": "c", "v": 1}')
    before, after = bag(b1, a1, c1), bag(c1, c1, a2)
    assert net(before, after, ["k"]) == [update_change(a1, a2), delete_change(b1), insert_change(c1)]
    assert net(before, after, []) == [delete_change(a1), delete_change(b1), insert_change(a2), insert_change(c1)]
    assert net(before, after, ["k", "hidden"]) == net(before, after, [])
    assert net(before, before.copy(), ["k"]) == []


@given(st.lists(st.integers(0, 20)), st.lists(st.integers(0, 20)), st.sampled_from([[], ["k"], ["k", "v"], ["x"]]))
def test_net_changes_lead_from_one_view_to_the_other(old, new, key):
    before, after = bag(*map(_row, old)), bag(*map(_row, new))
    folded = before.copy()
    folded.fold_text(change_tail(2, ", ".join(net(before, after, key))).encode())
    assert folded.texts == after.texts
    assert before.texts == bag(*map(_row, old)).texts
