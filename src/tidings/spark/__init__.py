"""The pipeline on Spark Structured Streaming.

`notifications` and `outputs` take and give DataFrames, `files` makes one of a folder, `rows` one of columns: see
`tidings.spark.stream` and `tidings.spark.sources`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidings.spark.sources.files import files
    from tidings.spark.stream import notifications, outputs, rows

__all__ = ["files", "notifications", "outputs", "rows"]


def __getattr__(name: str) -> Any:
    """Imports what users call when they ask for it: workers import this package too, and need less."""
    if name in __all__:
        from importlib import import_module

        return getattr(import_module(f"tidings.spark.{'sources.files' if name == 'files' else 'stream'}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
