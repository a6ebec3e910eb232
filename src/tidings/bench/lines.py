"""Changes as the text they would come in."""

from __future__ import annotations

from tidings.model.change import ChangeBatch, Op
from tidings.model.render import render_rows


def json_lines(changes: ChangeBatch) -> list[bytes]:
    """The batch as lines of `changes.jsonl`."""
    rows = render_rows(changes.rows.schema.names, changes.rows.columns, len(changes))
    return [
        f'{{"seq": {seq}, "table": "{changes.table}", "op": "{Op(op).name.lower()}", "row": {row}}}'.encode()
        for seq, op, row in zip(changes.seq.tolist(), changes.op.tolist(), rows, strict=True)
    ]
