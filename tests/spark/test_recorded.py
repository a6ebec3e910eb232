"""A recording hands out every line once, in blocks, whatever the sizes and however the file ends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.spark.sources import recorded as module
from tidings.spark.sources.recorded import Recording

lines_strategy = st.lists(st.binary(max_size=12).map(lambda data: data.replace(b"\n", b"")), max_size=30)


@given(
    lines=lines_strategy,
    ends=st.booleans(),
    batches=st.lists(st.integers(0, 7), min_size=1, max_size=3).filter(any),
    read=st.integers(1, 9),
    most=st.sampled_from([4, 10**9]),
)
def test_all_lines_once(
    tmp_path_factory: pytest.TempPathFactory,
    lines: list[bytes],
    ends: bool,
    batches: list[int],
    read: int,
    most: int,
) -> None:
    folder = tmp_path_factory.mktemp("source")
    data = b"\n".join(lines) + (b"\n" if ends and lines else b"")
    (folder / "changes").write_bytes(data)
    (folder / "points").write_bytes(b"p")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_READ_BYTES", read)
        patch.setattr(module, "_BLOCK_BYTES_MAX", most)
        Recording.write(folder / "index", folder / "changes", folder / "points", batches)
    recording = Recording(folder / "index")
    expected = data[:-1].split(b"\n") if data.endswith(b"\n") else data.split(b"\n") if data else []
    rows = [[*recording.rows(block)] for block in range(len(recording))]
    assert [row.kind for block in rows for row in block if row.kind != "lines"] == ["points", "end"]
    assert rows[0][0].kind == "points"
    assert rows[-1][-1].kind == "end"
    assert not [*recording.rows(len(recording))]
    seen: list[bytes] = []
    sizes = []
    for block in rows:
        read_before = len(seen)
        for row in block:
            if row.kind == "lines":
                assert row.position == len(seen)
                seen += (row.value or b"").split(b"\n")
        sizes.append(len(seen) - read_before)
    assert seen == expected
    if most < 10**9:
        # A block ends with the first line that ends behind its bytes, and what was read with that.
        assert all(len(row.value or b"") <= most + read + 13 for block in rows for row in block)
        return
    assert all(size == batches[number % len(batches)] for number, size in enumerate(sizes[:-1]))
    assert sizes[-1] <= batches[(len(sizes) - 1) % len(batches)]
