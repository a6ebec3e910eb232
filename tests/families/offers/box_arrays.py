"""Boxes as the arrays that a BoxIndex takes."""

import numpy as np

from tidings.families.offers.kernels.box_index import TEXT_FIELDS, NewBoxes, Queries
from tidings.families.offers.kernels.box_index.change import hash_texts


def _columns(boxes, places):
    """Arrays of boxes of the same axes; ends of texts at these places of the axes."""
    lo, hi = (
        np.array([getattr(box, name) for box in boxes], np.int64).reshape(len(boxes), -1) for name in ("lo", "hi")
    )
    codes, text = lo.copy(), bytearray()
    ends = np.full((len(boxes), TEXT_FIELDS * len(places)), -1, np.int64)
    for i, box in enumerate(boxes):
        for column, place in enumerate(places):
            for side, end in enumerate(box.texts[place] or (None, None)):
                if end is not None:
                    at = TEXT_FIELDS * column + 2 * side
                    ends[i, at : at + 2] = len(text), len(text) + len(end)
                    text += end
            if box.is_equality(place) and box.texts[place] is not None:
                value = np.frombuffer(bytearray(box.texts[place][0]) or bytearray(1), np.uint8)
                hashed = np.empty(1, np.int64)
                hash_texts(value, np.zeros(1, np.int64), np.array([len(box.texts[place][0])]), hashed)
                codes[i, place] = hashed[0]
    return lo, hi, codes, ends, np.frombuffer(text or bytearray(1), np.uint8)


def equal_mask(box):
    return sum(1 << place for place in range(len(box.axes)) if box.is_equality(place))


def new_boxes(owners, boxes, is_text):
    places = [place for place, axis in enumerate(boxes[0].axes) if is_text[axis]]
    lo, hi, codes, ends, text = _columns(boxes, places)
    equal = np.array([equal_mask(box) for box in boxes], np.int64)
    return NewBoxes(np.array(owners, np.int64), lo, hi, codes, equal, ends, text)


def queries(boxes):
    lo, hi, codes, ends, text = _columns(boxes, list(range(len(boxes[0].axes))))
    q = np.empty((len(boxes), 2 * lo.shape[1]), np.int64)
    q[:, ::2], q[:, 1::2] = hi, ~lo
    return Queries(q, codes, ends, text)
