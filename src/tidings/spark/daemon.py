"""Spark's Python daemon, with everything that workers need loaded before it forks them.

Spark starts the module named by `spark.python.daemon.module` once per executor and lets it fork a process for each task slot.
PySpark's own daemon forks first, and every worker then imports pandas, pyarrow, numba and compiled kernels for itself.
"""

from __future__ import annotations

import gc
import os
import sys

from pyspark.daemon import manager


def preload() -> None:
    """Imports the modules that tasks use, and loads the compiled kernels of replicas (`pipeline/warm.py`)."""
    import pandas  # noqa: F401
    import pyspark.worker  # noqa: F401

    import tidings.spark.replica_worker  # noqa: F401
    from tidings.pipeline.warm import warm

    warm()
    # Everything loaded so far stays: the garbage collection after every task need not traverse it.
    gc.collect()
    gc.freeze()


def main() -> None:
    # The first bytes that Spark reads from stdout must be the daemon's port.
    stdout = os.dup(1)
    os.dup2(2, 1)
    try:
        preload()
    finally:
        sys.stdout.flush()
        os.dup2(stdout, 1)
        os.close(stdout)
    manager()


if __name__ == "__main__":
    main()
