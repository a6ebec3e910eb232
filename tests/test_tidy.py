"""House rules that a reader relies on: short files that say what they are for, and nothing left lying about."""

import ast
import io
import re
import tokenize
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted(path for folder in ("src", "research") for path in (ROOT / folder).rglob("*.py"))
TESTS = sorted(path for path in (ROOT / "tests").rglob("*.py"))
LINES_MAX = 600
LEFT_BEHIND = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X|HA" + r"CK)\b")
MACHINE_PATH = re.compile(r"(?<![\w.~])/(home|root|work|Users|mnt|tmp|var|opt|private)/\w|\b[A-Z]:\\\\?\w")


def name_of(path):
    return str(path.relative_to(ROOT))


@cache
def text_of(path):
    return path.read_text(encoding="utf-8")


@cache
def nodes_of(path):
    return list(ast.walk(ast.parse(text_of(path))))


def test_files_are_short():
    assert [name_of(path) for path in SOURCES if len(text_of(path).splitlines()) > LINES_MAX] == []


def test_modules_say_what_they_are_for():
    assert [name_of(path) for path in SOURCES if not (ast.get_docstring(ast.parse(text_of(path))) or "").strip()] == []


def _found(pattern, kind):
    """(file, token) of all tokens of a kind in which something matches. Most files need not be tokenized to know."""
    return [
        (name_of(path), token.string)
        for path in (*SOURCES, *TESTS)
        if pattern.search(text_of(path))
        for token in tokenize.generate_tokens(io.StringIO(text_of(path)).readline)
        if token.type == kind and pattern.search(token.string)
    ]


def test_nothing_is_left_for_later():
    assert _found(LEFT_BEHIND, tokenize.COMMENT) == []


def test_no_path_of_a_machine_is_written_down():
    own = name_of(Path(__file__))
    assert [(name, text) for name, text in _found(MACHINE_PATH, tokenize.STRING) if name != own] == []


def _functions(path):
    return [node for node in nodes_of(path) if isinstance(node, ast.FunctionDef)]


def _asserts(node):
    calls = (part.func for part in ast.walk(node) if isinstance(part, ast.Call))
    return any(isinstance(part, ast.Assert) for part in ast.walk(node)) or any(
        isinstance(function, ast.Attribute) and function.attr == "raises" for function in calls
    )


def _called(node):
    return {part.func.id for part in ast.walk(node) if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)}


def test_tests_check_something():
    # What a test may call instead of asserting: functions of the tests that assert, and the checks of the contract suite.
    helpers = {node.name for path in TESTS for node in _functions(path) if _asserts(node)} | {"check", "check_family"}
    files = [path for path in TESTS if path.name.startswith("test_")]
    tests = {path: [node for node in _functions(path) if node.name.startswith("test")] for path in files}
    assert [name_of(path) for path, found in tests.items() if not found] == []
    assert [
        (name_of(path), node.name)
        for path, found in tests.items()
        for node in found
        if not _asserts(node) and not _called(node) & helpers
    ] == []


def test_tests_do_not_mock():
    imported = [
        (name_of(path), alias.name if isinstance(node, ast.Import) else node.module or "")
        for path in TESTS
        for node in nodes_of(path)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    ]
    assert [(name, module) for name, module in imported if "mock" in module] == []


def test_tests_do_not_sleep():
    calls = [
        (path.name, node.func.attr)
        for path in TESTS
        for node in nodes_of(path)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    ]
    # Killing a process at a random moment takes waiting for that moment.
    assert {name for name, called in calls if called == "sleep"} <= {"test_kill.py"}


@pytest.mark.parametrize("text", ["/home/ann/x", "open('/tmp/x')", "C:\\\\data"])
def test_machine_paths_are_recognised(text):
    assert MACHINE_PATH.search(text)


@pytest.mark.parametrize("text", ["a/tmp/b", "https://x.org/home/y", "1/work", "either/or"])
def test_other_slashes_are_not_machine_paths(text):
    assert not MACHINE_PATH.search(text)
