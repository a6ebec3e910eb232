"""Of several lives that begin at one moment only the last is heard of."""

from __future__ import annotations

import numpy as np

from tidings.model.points import Event, PointBatch


def last_lives(due: list[PointBatch]) -> list[PointBatch]:
    """Events of one moment without the lives that begin and end in it while another follows: nobody hears of those.

    Otherwise one subscription would have several snapshots at one seq.
    """
    if not any((points.event == np.int8(Event.DROP)).any() for points in due):
        return due
    created: dict[str, list[int]] = {}
    for points in due:
        births = points.take((points.event == np.int8(Event.CREATE)) & points.home)
        for id, order in zip(births.id.to_pylist(), births.order.tolist(), strict=True):
            created.setdefault(id, []).append(order)
    void = {id: (min(orders), max(orders)) for id, orders in created.items() if len(orders) > 1}
    if not void:
        return due
    kept = []
    for points in due:
        spans = [void.get(id, (0, 0)) for id in points.id.to_pylist()]
        is_void = [first <= order < last for order, (first, last) in zip(points.order.tolist(), spans, strict=True)]
        kept.append(points.take(~np.array(is_void, np.bool_)))
    return [points for points in kept if len(points)]
