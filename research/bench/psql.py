"""A session with a PostgreSQL server of our own, by its program psql."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tidings.bench.postgres import USER, as_user, running


@contextmanager
def server(programs: Path) -> Iterator[Psql]:
    """Starts a server and gives a session with it; stops it at the end."""
    with running(programs) as folder, Psql(folder, programs / "psql") as session:
        yield session


class Psql:
    """One session, fed with statements; each answers with a line such as `UPDATE 17`."""

    def __init__(self, folder: Path, program: Path) -> None:
        command = [str(program), "-h", str(folder), "-U", USER, "-d", USER, "-X", "-v", "ON_ERROR_STOP=1"]
        self._process = subprocess.Popen(
            as_user(command), cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Psql:
        return self

    def __exit__(self, *_: object) -> None:
        # Without input it ends; leaving the process closes its pipes.
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()

    def run(self, statements: Iterable[str]) -> list[str]:
        """Runs statements that return no rows, one after the other, each a transaction; gives their answers."""
        assert self._process.stdin is not None and self._process.stdout is not None
        texts = list(statements)
        self._process.stdin.write("".join(f"{text};\n" for text in texts))
        self._process.stdin.flush()
        answers = [self._process.stdout.readline().strip() for _ in texts]
        if not all(answers):
            raise RuntimeError("psql has stopped; see its message above")
        return answers
