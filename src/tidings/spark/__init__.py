"""The pipeline on Spark Structured Streaming: the only place that imports pyspark.

`notifications` and `outputs` take and give DataFrames, `files` makes one of a folder,
`rows` one of columns: see `tidings.spark.stream` and
`tidings.spark.sources`. `match_boxes` matches constraints in one batch: see `tidings.spark.offers.grid`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidings.spark.offers.grid import match_boxes
    from tidings.spark.sources.files import files
    from tidings.spark.stream import notifications, outputs, rows

__all__ = ["files", "match_boxes", "notifications", "outputs", "rows"]
_MODULES = {
    "files": "tidings.spark.sources.files",
    "match_boxes": "tidings.spark.offers.grid",
}


def __getattr__(name: str) -> Any:
    """Imports what users call when they ask for it: workers import this package too, and need less."""
    if name in __all__:
        from importlib import import_module

        return getattr(import_module(_MODULES.get(name, "tidings.spark.stream")), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
