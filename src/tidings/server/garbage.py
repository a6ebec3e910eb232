"""Garbage collection in processes that hold much, for long, and must answer quickly.

Python looks for garbage among all objects now and then, which takes a tenth of a second for every few hundred thousand of
them; meanwhile nobody is answered. Here what has lived for some seconds is set aside, and looked through every ten minutes.
"""

from __future__ import annotations

import gc
import time

_YOUNG, _MIDDLE, _NEVER = 5_000, 10, 1 << 30
_ASIDE_SECONDS, _WHOLE_SECONDS = 10.0, 600.0


class Collector:
    """Made when all is in place; `tick` is called now and then from then on."""

    def __init__(self) -> None:
        gc.collect()
        gc.freeze()
        gc.set_threshold(_YOUNG, _MIDDLE, _NEVER)
        self._aside = self._whole = time.monotonic()

    def tick(self, now: float) -> None:
        """now: as `time.monotonic`."""
        if now - self._aside < _ASIDE_SECONDS:
            return
        self._aside = now
        if now - self._whole >= _WHOLE_SECONDS:
            self._whole = now
            gc.unfreeze()
        gc.collect()
        gc.freeze()
