"""A shell in which the commands of a page are run as a reader would type them, services in the background included.

`$ command &` starts a process that runs until the page ends. What it writes is expected below the command itself, or below a
later one, behind that one's own output. Ports that pages name are replaced by free ones. What differs from run to run (times,
keys, tokens, ids of requests, the epoch of a service) is compared by its shape alone; `...` stands for anything within a line.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType

from in_process import tidings
from tidings.bench.live.ports import free_port

_PORTS = ("8090", "8091", "8000", "9000")
"""Ports that pages use: of the service, of another one, of a site, and of a receiver of webhooks."""
_IS_PLAIN = re.compile(r"[^|<>&;$*`]*")
"""Commands that need no shell: they run in this process, which spares their start."""
_SECONDS_MAX = 60.0
_SHAPES = [
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "TIME"),
    (re.compile(r'("request_id":"|x-request-id: )[0-9a-f]{16}'), r"\1ID"),
    (re.compile(r"tk_[\w-]{43}"), "tk_SECRET"),
    (re.compile(r"whsec_[\w+/]{43}="), "whsec_SECRET"),
    (re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]+"), "TOKEN"),
    (re.compile(r"\b[0-9a-z]{8}(?=[-_][\w~-]*\d\b)"), "EPOCH"),
    (re.compile(r'("epoch":"|"epoch": ")[0-9a-z]{8}'), r"\1EPOCH"),
]


class PageShell:
    """Runs commands in a folder; ends what they have started."""

    def __init__(
        self, folder: Path, environment: Mapping[str, str] | None = None, ports: Mapping[str, str] | None = None
    ) -> None:
        """ports: those that are known, by how pages call them."""
        self._folder = folder
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self._environment = {**os.environ, "PATH": path, "PYTHONUNBUFFERED": "1", **(environment or {})}
        self._ports: dict[str, str] = dict(ports or {})
        self._started: list[_Started] = []

    def __enter__(self) -> PageShell:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Last first: what follows a service ends before it.
        for started in reversed(self._started):
            started.stop()

    def real(self, text: str) -> str:
        """The text with ports that are free here."""
        for shown in _PORTS:
            if re.search(rf"\b{shown}\b", text):
                port = self._ports.setdefault(shown, str(free_port()))
                text = re.sub(rf"\b{shown}\b", port, text)
        return text

    def run(self, body: str) -> int:
        """Runs the commands of a console block, and compares what they write. Gives how many there were."""
        commands = re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]
        for command in commands:
            *lines, expected = _split(command)
            line = "\n".join(lines)
            if line.endswith(" &"):
                self._start(line.removesuffix(" &"), expected)
            else:
                self._compare(line, self._output_of(self.real(line)), expected)
        return len(commands)

    def _output_of(self, line: str) -> str:
        name, *words = shlex.split(line)
        if name == "tidings" and _IS_PLAIN.fullmatch(line):
            done = tidings(self._folder, *words)
        else:
            done = subprocess.run(
                line,
                shell=True,
                executable="/bin/bash",
                cwd=self._folder,
                capture_output=True,
                text=True,
                env=self._environment,
                check=False,
                timeout=_SECONDS_MAX,
            )
        return done.stdout if done.returncode == 0 else f"{done.stderr}[exit {done.returncode}]\n"

    def _start(self, line: str, expected: str) -> None:
        if line.startswith(("tidings serve ", "tidings gateway ")) and "--listen" not in line:
            line += f" --listen 127.0.0.1:{self.real('8090')}"
        closed = [port for port in self._ports.values() if not _is_open(port)]
        started = _Started(self.real(line), self._folder / f"output-{len(self._started)}", self._environment)
        self._started.append(started)
        self._compare(line, "", expected)
        if not expected:
            # A server that does not say when it listens.
            self._until(lambda: any(map(_is_open, closed)) or not started.is_alive)
            assert started.is_alive, started.said()

    def _until(self, condition: Callable[[], bool]) -> bool:
        """Whether it came true in time."""
        waited = threading.Event()
        return any(condition() or waited.wait(0.02) for _ in range(int(_SECONDS_MAX / 0.02)))

    def _compare(self, line: str, shown: str, expected: str) -> None:
        """Processes in the background may write what the command itself has not."""
        found = _Comparison(expected, self._ports)

        def is_complete() -> bool:
            for started in self._started:
                if found.is_equal(_lines(shown) + started.unread()):
                    started.read()
                    return True
                assert started.is_alive, f"{line}\n{started.said()}"
            return False

        if not found.is_equal(shown) and not (found.begins_with(shown) and self._until(is_complete)):
            behind = "".join(started.unread() for started in self._started)
            assert _lines(shown) + behind == expected, line


class _Started:
    """A process in the background, in a group of its own."""

    def __init__(self, line: str, output: Path, environment: Mapping[str, str]) -> None:
        self._output = output
        self._errors = output.with_suffix(".errors")
        self._read = 0
        with output.open("wb") as out, self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                ["/bin/bash", "-c", f"exec {line}"],
                cwd=output.parent,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=errors,
                env=dict(environment),
                start_new_session=True,
            )

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def unread(self) -> str:
        return self._output.read_text()[self._read :]

    def read(self) -> None:
        self._read = len(self._output.read_text())

    def said(self) -> str:
        return self._errors.read_text()

    def stop(self) -> None:
        if self.is_alive:
            os.killpg(self._process.pid, signal.SIGTERM)
            self._process.wait(30)


class _Comparison:
    """What is expected, by the shape of what differs from run to run."""

    def __init__(self, expected: str, ports: Mapping[str, str]) -> None:
        self._ports = ports
        shaped = _shaped(_lines(expected)).rstrip("\n")
        self._pattern = re.compile(r"[^\n]*?".join(map(re.escape, shaped.split("..."))))
        self._first = re.compile(r"[^\n]*?".join(map(re.escape, shaped.partition("\n")[0].split("..."))))

    def is_equal(self, shown: str) -> bool:
        return self._pattern.fullmatch(self._seen(shown)) is not None

    def begins_with(self, shown: str) -> bool:
        """Whether more output could still make it equal."""
        return not shown or self._first.fullmatch(self._seen(shown).partition("\n")[0]) is not None

    def _seen(self, shown: str) -> str:
        for name, port in self._ports.items():
            shown = re.sub(rf"\b{port}\b", name, shown)
        return _shaped(shown).rstrip("\n")


def _is_open(port: str) -> bool:
    with socket.socket() as found:
        return found.connect_ex(("127.0.0.1", int(port))) == 0


def _shaped(text: str) -> str:
    for pattern, shape in _SHAPES:
        text = pattern.sub(shape, text)
    return text


def _lines(text: str) -> str:
    """The text with an end of its last line: answers over HTTP have none."""
    return text if not text or text.endswith("\n") else f"{text}\n"


def _split(command: str) -> list[str]:
    r"""The lines of a command, which go on after a final \, and what is expected below it."""
    lines = []
    rest = command
    while True:
        line, _, rest = rest.partition("\n")
        lines.append(line)
        if not line.endswith("\\"):
            return [*lines, rest]
