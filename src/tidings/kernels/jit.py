"""How kernels are compiled: one decorator for all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compiles a function to machine code when it is first called, and keeps that on disk."""
    decorate = njit(cache=True, **options)
    return decorate if function is None else decorate(function)
