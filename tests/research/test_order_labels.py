"""Labels in the order of values: they are given anew only when there is no room between two."""

from research.strategies.topk.order_labels import OrderLabels


def test_labels_sort_like_the_values_and_change_only_when_there_is_no_room():
    labels, values = OrderLabels(), []
    changed = 0
    for i in range(200):
        # Always between the last two: the worst case.
        value = 0.5 if i == 0 else sum(sorted(values)[:2]) / 2 if i > 1 else 1.0
        values.append(value)
        changed += labels.add([value])
        assert sorted(values) == [value for _, value in sorted(zip(labels.of(values).tolist(), values, strict=True))]
    assert 0 < changed < 20
