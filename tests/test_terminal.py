"""Kernels are compiled ahead once, in processes of their own, and again only when their sources have changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tidings import terminal


def leave_a_mark() -> None:
    with Path(os.environ["TIDINGS_TEST_MARK"]).open("a") as marks:
        marks.write("x")


def test_kernels_are_compiled_ahead_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marks = tmp_path / "marks"
    monkeypatch.setenv("TIDINGS_TEST_MARK", str(marks))
    monkeypatch.setattr(terminal, "_note", lambda steps: tmp_path / "note")
    for _ in range(2):
        terminal.compile_kernels([leave_a_mark])
    assert marks.read_text() == "x"
    monkeypatch.setattr(terminal, "_state", lambda: "other sources")
    terminal.compile_kernels([leave_a_mark])
    assert marks.read_text() == "xx"
    monkeypatch.setattr(terminal, "_note", lambda steps: tmp_path / "no such folder" / "note")
    terminal.compile_kernels([leave_a_mark])
    assert marks.read_text() == "xxx"
