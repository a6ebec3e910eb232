"""The Java process in which Spark runs, started by ourselves rather than by PySpark: apart from this process, and known to it.

It is the leader of a session of its own, so that what a terminal or a supervisor sends to the whole process group (Ctrl-C,
SIGTERM) does not reach it, nor the Python workers below it: they live until the driver has finished what it began. It ends when
its stdin does, at the latest when this process is over, however that ended.

A process that ignores these signals, as the job behind a service does, sets STAYS: Java, which ignores them too, stays in the
process group then.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from pyspark import SparkContext
from pyspark.find_spark_home import _find_spark_home
from pyspark.serializers import UTF8Deserializer, read_int

from tidings.model.errors import RunError
from tidings.signals import aside

_PORT, _SECRET, _WHERE = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET", "_PYSPARK_DRIVER_CONN_INFO_PATH"
STAYS = "TIDINGS_JAVA_STAYS"
"""Variable of the environment: if it is set, Java stays in the session and the process group of this process."""
_POLL_SECONDS = 0.05


class JavaProcess:
    """settings: of Spark. log: what Java and the workers below it write to stderr goes there."""

    def __init__(self, settings: Mapping[str, str], log: Path) -> None:
        self._log = log
        options = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
        rest = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
        command = [f"{_find_spark_home()}/bin/spark-submit", *options, *rest]
        with tempfile.TemporaryDirectory(prefix="tidings-java-") as folder, log.open("ab") as said:
            place = Path(folder) / "gateway"
            begin = said.tell()
            environment = {**os.environ, "SPARK_CONNECT_MODE": "0", _WHERE: str(place)}
            # In another thread: a signal that comes while a process is made would leave it behind, known to nobody.
            making = aside(
                lambda: subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stderr=said,
                    env=environment,
                    start_new_session=not os.environ.get(STAYS),
                )
            )
            try:
                self._process = making.result()
                self._await(place, begin)
                with place.open("rb") as known:
                    port, secret = read_int(known), UTF8Deserializer().loads(known)
                # Where PySpark looks for a Java that is there already. Processes started later must not find it.
                os.environ |= {_PORT: str(port), _SECRET: secret}
                SparkContext._ensure_initialized()
            except BaseException:
                self._process = making.result()
                self.kill()
                raise
            finally:
                for name in (_PORT, _SECRET):
                    os.environ.pop(name, None)

    def _await(self, place: Path, begin: int) -> None:
        """Waits until Java says how it is reached. begin: where its words begin in the log."""
        while not place.exists():
            if self.ending() is not None:
                raise RunError(f"Java did not start: {_last_words(self._log, begin)}")
            time.sleep(_POLL_SECONDS)

    def ending(self, seconds: float = 0.0) -> str | None:
        """How the process ended; None if it lives after so many seconds."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        code = self._process.returncode
        if code is None:
            return None
        return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"

    def kill(self) -> None:
        """Kills it and all processes of its session."""
        for pid in {self._process.pid, *_session(self._process.pid)}:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()


def _last_words(log: Path, begin: int) -> str:
    """The line of a log that says why Java ended, and where there are more."""
    lines = log.read_bytes()[begin:].decode(errors="replace").splitlines() if log.is_file() else []
    telling = [line for line in lines if re.search("error|exception|invalid", line, re.IGNORECASE)]
    return f"{telling[0].strip() if telling else 'it said nothing'} (see {log})"


def _session(leader: int) -> list[int]:
    """Processes of a session, where the system tells."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if int((entry / "stat").read_text().rpartition(")")[2].split()[3]) == leader:
                found.append(int(entry.name))
    return found
