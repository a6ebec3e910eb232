"""Compiled functions: machine code on disk is as fresh as all its sources, shared by processes, and inner ones make none."""

from __future__ import annotations

import pickle
import subprocess
import sys
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

from tidings.kernels import jit
from tidings.kernels.jit import kernel


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A package of its own with two kernels, of which one calls the other."""
    folder = tmp_path / "tidings_sources"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "step.py").write_text(
        "from tidings.kernels.jit import kernel\n\nSTEP = 2\n\n\n@kernel\ndef step(x):\n    return x + STEP\n"
    )
    (folder / "outer.py").write_text(
        "from tidings.kernels.jit import kernel\nfrom tidings_sources.step import step\n\n\n"
        "@kernel\ndef total(n):\n    found = 0\n    for i in range(n):\n        found += step(i)\n    return found\n"
    )
    return tmp_path


def total_of_three(folder: Path) -> list[int]:
    """[result, how often the kernel was compiled rather than loaded]"""
    sys.path.insert(0, str(folder))
    total = import_module("tidings_sources.outer").total
    return [total(3), sum(total.stats.cache_misses.values())]


def run(*folders: Path) -> list[list[int]]:
    """What processes of their own find, all at once; they come from one that has imported numba."""
    processes = get_context("forkserver")
    processes.set_forkserver_preload(["tidings.kernels.jit", "pytest"])
    with processes.Pool(len(folders), maxtasksperchild=1) as pool:
        return pool.map(total_of_three, folders, chunksize=1)


def test_a_second_process_loads_what_the_first_has_compiled(sources: Path) -> None:
    assert run(sources) == [[9, 1]]
    assert run(sources) == [[9, 0]]


def test_a_change_in_a_file_that_a_kernel_imports_is_noticed(sources: Path) -> None:
    assert run(sources) == [[9, 1]]
    step = sources / "tidings_sources" / "step.py"
    step.write_text(step.read_text().replace("STEP = 2", "STEP = 5"))
    assert run(sources) == [[18, 1]]
    assert run(sources) == [[18, 0]]


def test_machine_code_of_a_version_with_other_modules_is_made_anew(sources: Path) -> None:
    assert run(sources) == [[9, 1]]
    (index,) = sources.rglob("outer.total*.nbi")
    with index.open("rb") as file:
        version = pickle.load(file)
    index.write_bytes(pickle.dumps(version) + b"ca_module_that_was_renamed\nThing\n.")
    assert run(sources) == [[9, 1]]
    assert run(sources) == [[9, 0]]


def test_processes_that_need_a_kernel_at_once_compile_it_once(sources: Path) -> None:
    assert sorted(run(sources, sources)) == [[9, 0], [9, 1]]


@kernel
def _square(x):
    return x * x


@kernel
def _fill(out):
    if len(out) == 0:
        raise ValueError("nothing to fill")
    for i in range(len(out)):
        out[i] = _square(i)


@kernel
def _both(out):
    _fill(out)
    return _square(len(out))


def test_inner_functions_can_be_called_from_python_too() -> None:
    out = np.zeros(4, np.int64)
    assert _both(out) == 16
    assert out.tolist() == [0, 1, 4, 9]
    assert _square(5) == 25


def test_exceptions_of_inner_functions_reach_python() -> None:
    with pytest.raises(ValueError, match="nothing to fill"):
        _both(np.zeros(0, np.int64))


_COUNTING = """
import ctypes
from typing import NamedTuple
import numpy as np
from tidings.kernels.jit import kernel, uncounted

class Parts(NamedTuple):
    kind: object
    table: object
    slot: object

@kernel
def parts_of(words):
    return Parts(words[0], words[1], words[2])

@uncounted
def product(words):
    parts = parts_of(words)
    found = 0
    for i in range(len(parts.kind)):
        found += parts.kind[i] * parts.slot[i]
    return found

@kernel
def mark(words, tables, places, found):
    kind, table, slot = parts_of(words)
    for event in range(kind.shape[0]):
        if kind[event] == 0:
            for i in range(tables.shape[0]):
                if tables[i] == table[event]:
                    found[i] = 1
        elif kind[event] == 1 and slot[event] < places.shape[0] and places[slot[event]] != -1:
            found[places[slot[event]]] = 1

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
words = np.zeros((3, 500), np.int64)
words[0, :7], words[2, :7] = 1, np.arange(7)
assert product(words) == 21
for _ in range(100):
    mark(words.copy(), np.zeros(2, np.int64), np.zeros(7, np.int64), np.zeros(2, np.int64))
    # An array that was freed too early is noticed when its memory is given out again.
    for at in [libc.malloc(size) for size in range(16, 1100, 16) for _ in range(8)]:
        libc.free(at)
"""


def test_functions_that_return_arrays_count_references_as_their_callers_do(tmp_path: Path) -> None:
    program = tmp_path / "counting.py"
    program.write_text(_COUNTING)
    found = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr


@kernel
def _factorial(n):
    if n <= 1:
        return 1
    return n * _factorial(n - 1)


@kernel
def _factorials(out):
    for i in range(len(out)):
        out[i] = _factorial(i)


def test_recursive_functions_are_compiled() -> None:
    out = np.zeros(5, np.int64)
    _factorials(out)
    assert out.tolist() == [1, 1, 2, 6, 24]


def test_stamps_follow_imports() -> None:
    """The stamp of a kernel that imports another file depends on that file."""
    lines = jit.PACKAGE / "kernels" / "lines.py"
    assert (jit.PACKAGE / "kernels" / "lives.py") in jit._read(lines, jit.PACKAGE)[1]
