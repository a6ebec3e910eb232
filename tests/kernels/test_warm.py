"""Warming up compiles every kernel that the classes call, and its result is found again by another process."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tidings import terminal
from tidings.families.drift import view
from tidings.families.join import exposure, interleave
from tidings.families.topk.kernels import box_topk, plane_kdtree, range_topk, view_lists
from tidings.kernels import (
    anchors,
    forest,
    gaps,
    ladders,
    meshes,
    stabs,
)
from tidings.kernels.warm import ENTRY_KERNELS, is_compiled, warm


def test_after_warming_up_all_kernels_are_compiled_once() -> None:
    warm()
    assert is_compiled()
    assert [len(kernel.signatures) for kernel in ENTRY_KERNELS] == [1] * len(ENTRY_KERNELS)


def test_read_only_arguments_compile_nothing_more() -> None:
    warm()
    column = np.zeros(1)
    column.flags.writeable = False
    index = anchors.Anchors(anchors.ABSOLUTE)
    index.new_items([index.new_audience()], column, [anchors.NO_TIME])
    assert len(anchors.anchors_items.new_items.signatures) == 1


def test_every_kernel_called_by_classes_and_views_is_listed() -> None:
    ours = (forest, anchors, gaps, ladders, meshes, stabs)
    topk = (box_topk.index, plane_kdtree.tree, range_topk.index, view_lists.lists)
    sources = "".join(map(inspect.getsource, (*ours, *topk, view)))
    prefixes = "|".join(module.__name__.rpartition(".")[2] for module in ours)
    called = set(re.findall(rf"\b(?:{prefixes})_\w+\.(\w+)\(", sources))
    called |= set(re.findall(r"(?<!\w)(?:build|change|net|query)\.(\w+)\(", "".join(map(inspect.getsource, topk))))
    called.remove("profile_words")
    imported = {"rounds", "covered"}
    imported.update(re.findall(r"from tidings.kernels.succession import (\w+), (\w+)", sources).pop())
    assert "from tidings.kernels.coverage import covered" in inspect.getsource(exposure)
    assert "from tidings.kernels.rounds import NOTHING, rounds" in inspect.getsource(interleave)
    assert called | imported == {kernel.__name__ for kernel in ENTRY_KERNELS}


def test_other_processes_see_whether_kernels_are_cached(tmp_path: Path) -> None:
    warm()
    ask = [sys.executable, "-c", "from tidings.kernels.warm import is_compiled; print(is_compiled())"]
    assert subprocess.run(ask, capture_output=True, text=True, check=True).stdout == "True\n"
    elsewhere = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    assert subprocess.run(ask, capture_output=True, text=True, check=True, env=elsewhere).stdout == "False\n"


def test_kernels_are_asked_again_only_when_their_sources_have_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr("tidings.kernels.warm.is_compiled", lambda: asked.append("") or True)
    monkeypatch.setattr(terminal, "_note", lambda what: tmp_path / what)
    for _ in range(2):
        terminal.warm_kernels()
    assert len(asked) == 1
    monkeypatch.setattr(terminal, "_state", lambda: "other sources")
    terminal.warm_kernels()
    assert len(asked) == 2
    monkeypatch.setattr(terminal, "_note", lambda what: tmp_path / "no such folder" / what)
    terminal.warm_kernels()
    assert len(asked) == 3


def test_replicas_are_warmed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "_note", lambda what: tmp_path / what)
    warmed: list[str] = []
    for _ in range(2):
        terminal.warm_replicas(lambda: warmed.append(""))
    assert len(warmed) == 1
    assert terminal._is_noted("replicas")
    assert not terminal._is_noted("messages")
