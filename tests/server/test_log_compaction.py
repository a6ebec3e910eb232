"""Compaction beside a log that keeps everything, and killed at every point of it: no view is lost, and nothing is made up."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_log import EVERYTHING, IDS, SEGMENT_BYTES, STEP, Model, batch_of, check_log, grown, kind, random_steps

from tidings.server.log import LogReader, LogWriter, files
from tidings.server.log.segment_layout import segment_starts


class Killed(BaseException):
    """In place of a signal: whatever the writer has in memory is gone."""


class Killer:
    """Lets a number of calls through that write or remove something, and then kills; one that writes is left half done."""

    def __init__(self, calls: int) -> None:
        self.left = calls
        self.count = 0
        self._write, self._unlink, self._create = files.write_at, Path.unlink, files.create

    def _is_last(self) -> bool:
        self.left -= 1
        self.count += 1
        return self.left < 0

    def write(self, handle: int, data: bytes, offset: int) -> None:
        if self._is_last():
            os.pwrite(handle, data[: len(data) // 2], offset)
            raise Killed
        self._write(handle, data, offset)

    def create(self, path: Path, data: bytes, size: int) -> int:
        if self._is_last():
            raise Killed
        return self._create(path, data, size)

    def unlink(self, path: Path, missing_ok: bool = False) -> None:
        if self._is_last():
            raise Killed
        self._unlink(path, missing_ok)

    def retain(self, writer: LogWriter, bytes_max: int) -> bool:
        """Whether it was killed."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(files, "write_at", self.write)
            patch.setattr(files, "create", self.create)
            patch.setattr(Path, "unlink", lambda path, missing_ok=False: self.unlink(path, missing_ok))
            try:
                writer.retain(EVERYTHING, bytes_max, 0)
            except Killed:
                return True
        return False


def check_beside(compact: LogReader, whole: LogReader) -> None:
    """What the compacted log says is what the other says, from any position that has not expired; all views are there."""
    assert (compact.batch, compact.passed) == (whole.batch, whole.passed)
    assert {id for id, _ in compact.names()} == {id for id, _ in whole.names()}
    for id in IDS:
        number, own = compact.number(id), whole.number(id)
        if number is None:
            assert own is None or whole.is_ended(own)
            continue
        assert own is not None
        assert (compact.head_seq(number), compact.is_ended(number)) == (whole.head_seq(own), whole.is_ended(own))
        if not whole.is_ended(own):
            assert compact.view(number).texts == whole.view(own).texts
        everything = whole.since(own, 0)
        for after in [0, *(record.seq for record in everything)]:
            found = compact.since(number, after)
            if found is not None:
                wanted = whole.since(own, after)
                assert [(r.seq, kind(r), r.tail) for r in found] == [(r.seq, kind(r), r.tail) for r in wanted]
            if (view := compact.view(number, at=after)) is not None:
                assert view.texts == whole.view(own, at=after).texts


ACTION = st.one_of(
    st.lists(STEP, min_size=1, max_size=12),
    st.lists(STEP, min_size=8, max_size=12),
    st.tuples(st.just("retain"), st.integers(1, 4)),
    st.tuples(st.just("kill"), st.integers(0, 6)),
    st.just("look"),
)


@given(st.lists(ACTION, min_size=10, max_size=60))
@settings(max_examples=40, deadline=None)
def test_a_compacted_log_says_what_one_says_that_keeps_everything(actions) -> None:
    with tempfile.TemporaryDirectory() as name:
        model = Model()
        compact = LogWriter(Path(name) / "compact", segment_bytes=SEGMENT_BYTES)
        whole = LogWriter(Path(name) / "whole", segment_bytes=SEGMENT_BYTES)
        follower = LogReader(Path(name) / "compact")
        for action in actions:
            if isinstance(action, list):
                told, ended = model.run(action)
                for writer in (compact, whole):
                    writer.append(model.batch, model.seq, model.batch, batch_of(told), ended)
            elif action == "look":
                follower.refresh()
                check_beside(follower, LogReader(Path(name) / "whole"))
            elif action[0] == "retain":
                compact.retain(EVERYTHING, action[1] * SEGMENT_BYTES, 0)
            else:
                Killer(action[1]).retain(compact, SEGMENT_BYTES)
                compact.close()
                compact = LogWriter(Path(name) / "compact", segment_bytes=SEGMENT_BYTES)
        follower.refresh()
        for reader in (follower, LogReader(Path(name) / "compact")):
            check_beside(reader, LogReader(Path(name) / "whole"))
        compact.close()
        whole.close()


def test_killed_at_every_point_of_a_compaction(tmp_path: Path) -> None:
    """Also between the bases, which are written then, and the first segment that is removed."""
    writer, model = grown(tmp_path / "log", 60, seed=3)
    writer.close()
    starts = segment_starts(tmp_path / "log")
    assert len(starts) > 4
    calls, has_all_segments = 0, []
    while True:
        folder = tmp_path / f"killed-{calls}"
        shutil.copytree(tmp_path / "log", folder)
        writer = LogWriter(folder, segment_bytes=SEGMENT_BYTES)
        follower = LogReader(folder)
        if not Killer(calls).retain(writer, 2 * SEGMENT_BYTES):
            break
        os.close(writer._handle)
        left = segment_starts(folder)
        has_all_segments.append(set(starts) <= set(left))
        follower.refresh()
        check_log(follower, model, is_whole=False)
        check_log(LogReader(folder), model, is_whole=False)
        # Another process goes on, and finishes it.
        again, own = LogWriter(folder, segment_bytes=SEGMENT_BYTES), Model()
        own.__dict__.update(grown(tmp_path / f"model-{calls}", 60, seed=3)[1].__dict__)
        own.append(again, random_steps(np.random.default_rng(calls)))
        again.retain(EVERYTHING, 2 * SEGMENT_BYTES, 0)
        assert starts[0] not in segment_starts(folder)
        follower.refresh()
        check_log(follower, own, is_whole=False)
        check_log(LogReader(folder), own, is_whole=False)
        again.close()
        calls += 1
    writer.close()
    # Killed while writing, and while removing.
    assert calls == len(has_all_segments) > 4
    assert has_all_segments[0] and not has_all_segments[-1]
    assert has_all_segments == sorted(has_all_segments, reverse=True)


SIGNALLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from test_log import EVERYTHING, SEGMENT_BYTES, LogWriter
def die(path, missing_ok=False):
    os.kill(os.getpid(), signal.SIGKILL)
writer = LogWriter(Path(sys.argv[1]), segment_bytes=SEGMENT_BYTES)
Path.unlink = die
writer.retain(EVERYTHING, 2 * SEGMENT_BYTES, 0)
"""


@pytest.mark.parametrize("seed", [1, 4])
def test_a_process_that_dies_when_the_bases_are_written_and_nothing_is_removed(tmp_path: Path, seed: int) -> None:
    writer, model = grown(tmp_path / "log", 50, seed=seed)
    writer.close()
    before = segment_starts(tmp_path / "log")
    command = [sys.executable, "-c", SIGNALLED, str(tmp_path / "log"), str(Path(__file__).parent)]
    assert subprocess.run(command).returncode == -signal.SIGKILL
    assert set(before) <= set(segment_starts(tmp_path / "log"))
    check_log(LogReader(tmp_path / "log"), model, is_whole=False)
    again = LogWriter(tmp_path / "log", segment_bytes=SEGMENT_BYTES)
    assert before[0] not in segment_starts(tmp_path / "log"), "the next writer removes what is before the beginning"
    check_log(LogReader(tmp_path / "log"), model, is_whole=False)
    again.close()
