"""House rules that a reader relies on: short files that say what they are for, and nothing left lying about."""

import ast
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
TESTS = sorted(path for path in (ROOT / "tests").rglob("*.py"))
LINES_MAX = 600
LEFT_BEHIND = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X|HA" + r"CK)\b")
MACHINE_PATH = re.compile(r"(?<![\w.~])/(home|root|work|Users|mnt|tmp|var|opt|private)/\w|\b[A-Z]:\\\\?\w")


def name_of(path):
    return str(path.relative_to(ROOT))


every_source = pytest.mark.parametrize("path", SOURCES, ids=name_of)
every_file = pytest.mark.parametrize("path", [*SOURCES, *TESTS], ids=name_of)


@every_source
def test_files_are_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LINES_MAX


@every_source
def test_modules_say_what_they_are_for(path):
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert docstring
    assert docstring.strip()


@every_file
def test_nothing_is_left_for_later(path):
    found = [
        token.start for token in _tokens(path) if token.type == tokenize.COMMENT and LEFT_BEHIND.search(token.string)
    ]
    assert found == []


@pytest.mark.parametrize("path", [path for path in (*SOURCES, *TESTS) if path != Path(__file__)], ids=name_of)
def test_no_path_of_a_machine_is_written_down(path):
    found = [
        token.string for token in _tokens(path) if token.type == tokenize.STRING and MACHINE_PATH.search(token.string)
    ]
    assert found == []


def _tokens(path):
    with path.open("rb") as source:
        return list(tokenize.tokenize(source.readline))


def _functions(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def _asserts(node):
    calls = (part.func for part in ast.walk(node) if isinstance(part, ast.Call))
    return any(isinstance(part, ast.Assert) for part in ast.walk(node)) or any(
        isinstance(function, ast.Attribute) and function.attr == "raises" for function in calls
    )


def _called(node):
    return {part.func.id for part in ast.walk(node) if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)}


# What a test may call instead of asserting: functions of the tests that assert, and the checks of the contract suite.
HELPERS = {node.name for path in TESTS for node in _functions(path) if _asserts(node)} | {"check", "check_family"}


def _can_fail(node):
    return _asserts(node) or bool(_called(node) & HELPERS)


@pytest.mark.parametrize("path", [path for path in TESTS if path.name.startswith("test_")], ids=name_of)
def test_tests_check_something(path):
    tests = [node for node in _functions(path) if node.name.startswith("test")]
    assert tests, "no tests"
    assert [node.name for node in tests if not _can_fail(node)] == []


@pytest.mark.parametrize("path", TESTS, ids=name_of)
def test_tests_neither_mock_nor_sleep(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    modules |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    assert not {module for module in modules if "mock" in module}
    calls = {
        node.func.attr for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }
    # Killing a process at a random moment takes waiting for that moment.
    assert "sleep" not in calls or path.name == "test_kill.py"


@pytest.mark.parametrize("text", ["/home/ann/x", "open('/tmp/x')", "C:\\\\data"])
def test_machine_paths_are_recognised(text):
    assert MACHINE_PATH.search(text)


@pytest.mark.parametrize("text", ["a/tmp/b", "https://x.org/home/y", "1/work", "either/or"])
def test_other_slashes_are_not_machine_paths(text):
    assert not MACHINE_PATH.search(text)
