"""The recorded source hands out every line once, in blocks, whatever the sizes and however the file ends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.spark import source as module
from tidings.spark.source import RecordedReader

lines_strategy = st.lists(st.binary(max_size=12).map(lambda data: data.replace(b"\n", b"")), max_size=30)


@given(
    lines=lines_strategy,
    ends=st.booleans(),
    batches=st.lists(st.integers(1, 7), min_size=1, max_size=3),
    partitions=st.integers(1, 3),
    read=st.integers(1, 9),
)
def test_all_lines_once(
    tmp_path_factory: pytest.TempPathFactory,
    lines: list[bytes],
    ends: bool,
    batches: list[int],
    partitions: int,
    read: int,
) -> None:
    folder = tmp_path_factory.mktemp("source")
    data = b"\n".join(lines) + (b"\n" if ends and lines else b"")
    (folder / "changes").write_bytes(data)
    (folder / "points").write_bytes(b"p")
    kept, module._READ_BYTES = module._READ_BYTES, read
    try:
        seen, kinds = _read_all(RecordedReader(str(folder / "changes"), str(folder / "points"), batches, partitions))
    finally:
        module._READ_BYTES = kept
    expected = data[:-1].split(b"\n") if data.endswith(b"\n") else data.split(b"\n") if data else []
    assert [seen[position] for position in sorted(seen)] == expected
    assert sorted(seen) == list(range(len(expected)))
    assert kinds.count("points") == 1
    assert kinds.count("end") == 1


def _read_all(reader: RecordedReader) -> tuple[dict[int, bytes], list[str]]:
    seen: dict[int, bytes] = {}
    kinds: list[str] = []
    at = reader.initialOffset()
    while (end := reader.latestOffset(at)) != at:
        for block in reader.partitions(at, end):
            kinds.append(block.kind)
            for batch in reader.read(block):
                row = batch.to_pylist()[0]
                if block.kind == "lines":
                    for i, line in enumerate(row["value"].split(b"\n")):
                        assert row["position"] + i not in seen
                        seen[row["position"] + i] = line
        at = end
    return seen, kinds
