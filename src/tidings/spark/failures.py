"""What Spark says when it refuses a query or stops one, as one line that says what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql.streaming import StreamingQuery

from tidings.live.job import NOT_WHOLE
from tidings.model.errors import RunError, UsageError

_FULL = ("No space left on device", "Disk quota exceeded", "File too large")
_DAMAGED = (
    "MISSING_STATE_DIRECTORY",
    "CANNOT_LOAD_STATE_STORE",
    "Checksum error",
    "java.lang.AssertionError",
    "doesn't exist",
)


@contextmanager
def refusals(what: str, formats: Sequence[str] = ()) -> Iterator[None]:
    """UsageError if Spark or the file system refuses `what`, an option of the command. formats: those that we have."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        said = _said(error)
        if "DATA_SOURCE_NOT_FOUND" in said:
            raise UsageError(
                f"{what}: there is no such format; known are {', '.join(formats)}, and those of Spark. Another one needs "
                "the jar of its connector: --conf spark.jars=FILE or --conf spark.jars.packages=COORDINATES"
            ) from error
        # A checkpoint is read only when the query starts.
        raise UsageError(
            f"the checkpoint {NOT_WHOLE} ({_plain(said)})" if _is_damage(said) else f"{what}: {_plain(said)}"
        ) from error
    except OSError as error:
        raise UsageError(f"{what}: cannot use {error.filename}: {error.strerror}") from error


def failure_of(query: StreamingQuery, checkpoint: Path) -> RunError:
    """Why a query has stopped by itself."""
    text = str(query.exception())
    own = re.findall(r"tidings\.model\.errors\.\w+: (.*)", text)
    if own:
        return RunError(own[-1])
    for phrase in _FULL:
        if phrase in text:
            return RunError(
                f"the disk is full ({phrase}): make room for {checkpoint}, the sink and temporary files, then give the same "
                "command again: it goes on where it stopped"
            )
    said = _plain(_cause(text))
    if _is_damage(text) or f"file:{checkpoint.resolve()}/" in said or not checkpoint.exists():
        return RunError(f"{checkpoint} {NOT_WHOLE} ({said})")
    return RunError(f"the Spark query stopped: {said}")


def _is_damage(text: str) -> bool:
    return any(phrase in text for phrase in _DAMAGED)


def _said(error: Exception) -> str:
    return str(error.java_exception.toString()) if isinstance(error, Py4JJavaError) else str(error)


def _cause(text: str) -> str:
    """What was wrong first: the last line of Python's trace, if it was in Python."""
    python = re.findall(r"^(?:\w+\.)*\w+(?:Error|Exception): .*", text, re.MULTILINE) if "Traceback" in text else []
    return python[-1] if python else text


def _plain(text: str) -> str:
    """The first line, without Java's classes and codes of errors."""
    line = text.strip().partition("\n")[0]
    line = re.sub(r"^(?:[\w.$]+(?:Exception|Error): )+", "", line)
    return re.sub(r"^\[[A-Z_.]+\] | SQLSTATE: \w+$", "", line)
