"""From codes of values to places on paper."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tidings.model.codes import CODE_MAX, CODE_MIN, Int64Array, code_of, doubles_of_codes, value_of
from tidings.model.types import ColumnType

Float64Array = npt.NDArray[np.float64]

_MARGIN = 0.06
_TICKS = 5


@dataclass(frozen=True)
class Scale:
    """A stretch of the values of a column, drawn over `length` pixels."""

    type: ColumnType
    first: float
    last: float
    length: float

    def place(self, codes: Int64Array) -> Float64Array:
        """Pixels from the start; what lies outside of the stretch is drawn at its end."""
        at = (_numbers(self.type, codes) - self.first) / (self.last - self.first)
        return np.clip(at, 0.0, 1.0) * self.length

    def ticks(self) -> list[tuple[float, str]]:
        """(pixels, text) of a few round values."""
        raw = (self.last - self.first) / _TICKS
        power = 10.0 ** math.floor(math.log10(raw))
        step = min((power * m for m in (1, 2, 5, 10) if power * m >= raw), default=raw)
        if self.type is not ColumnType.DOUBLE:
            step = max(1.0, round(step))
        values = np.arange(math.ceil(self.first / step), math.floor(self.last / step) + 1) * step
        pixels = (values - self.first) / (self.last - self.first) * self.length
        return [(float(at), self._text(float(value))) for at, value in zip(pixels, values, strict=True)]

    def _text(self, value: float) -> str:
        if self.type is ColumnType.DOUBLE:
            return f"{value:.6g}"
        return value_of(self.type, int(value))


def scale_for(type: ColumnType, codes: Int64Array, length: float) -> Scale:
    """A scale on which all these codes have a place, but for open ends and infinities."""
    numbers = _numbers(type, codes[(codes != CODE_MIN) & (codes != CODE_MAX)])
    numbers = numbers[np.isfinite(numbers)]
    first, last = (float(numbers.min()), float(numbers.max())) if len(numbers) else (0.0, 1.0)
    margin = (last - first) * _MARGIN or max(abs(first), 1.0) * _MARGIN
    return Scale(type, first - margin, last + margin, length)


def _numbers(type: ColumnType, codes: Int64Array) -> Float64Array:
    if type is not ColumnType.DOUBLE:
        return codes.astype(np.float64)
    infinite = code_of(type, math.inf)
    # Codes beyond those of the infinities stand for open ends.
    return doubles_of_codes(np.clip(codes, code_of(type, -math.inf), infinite))
