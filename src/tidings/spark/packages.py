"""Jars that Spark needs besides its own for some sources and sinks: fetched from Maven when the session starts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import pyspark

SCALA = "2.13"
"""The version of Scala for which PySpark's jars are built."""
_CONNECTORS = {"kafka": "spark-sql-kafka-0-10"}
_PACKAGES = "spark.jars.packages"
_PLACES = (_PACKAGES, "spark.jars", "spark.driver.extraClassPath")


def packages(formats: Iterable[str], config: Mapping[str, str]) -> dict[str, str]:
    """Settings that add the connectors of sources and sinks, of the version of the installed Spark.

    A connector is not added if Spark's own folder of jars has it, or a setting of `config` names it.
    """
    wanted = {_CONNECTORS[format] for format in formats if format in _CONNECTORS}
    given = " ".join([*(config.get(name, "") for name in _PLACES), *_own_jars()])
    missing = sorted(name for name in wanted if name not in given)
    if not missing:
        return {}
    coordinates = [f"org.apache.spark:{name}_{SCALA}:{pyspark.__version__}" for name in missing]
    return {_PACKAGES: ",".join(filter(None, [config.get(_PACKAGES, ""), *coordinates]))}


def _own_jars() -> list[str]:
    home = os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent
    return [path.name for path in (Path(home) / "jars").glob("*.jar")]
