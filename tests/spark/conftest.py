"""One Spark session for all tests that run the job in this process."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from postgres_server import database, server  # noqa: F401
from pyspark.sql import SparkSession

from tidings.pipeline.warm import STEPS
from tidings.spark.session import spark_session
from tidings.terminal import compile_kernels


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    compile_kernels(STEPS)
    folder = tmp_path_factory.mktemp("spark")
    with spark_session("tidings tests", "local[2]", folder / "spark.log") as session:
        yield session
    os.environ.pop("PYSPARK_PYTHON", None)
