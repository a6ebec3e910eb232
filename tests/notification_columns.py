"""The lines of notifications, once their columns have been found to say the same."""

import json

from tidings.model.notification import NotificationBatch


def checked_lines(told: NotificationBatch) -> list[str]:
    lines = told.lines()
    columns = zip(
        told.subscriptions().to_pylist(),
        told.seq.tolist(),
        told.is_snapshot.tolist(),
        told.tx(),
        map(json.loads, told.changes().to_pylist()),
        strict=True,
    )
    records = map(json.loads, lines)
    names = ("subscription", "seq", "snapshot", "tx", "changes")
    assert list(columns) == [tuple(record.get(name) for name in names) for record in records]
    return lines
