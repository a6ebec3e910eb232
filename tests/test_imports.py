"""Imports go one way: model below all, families side by side and unaware of each other, Spark and the commands on top."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "tidings"
MODULES = sorted(SOURCE.rglob("*.py"))

ALLOWED = {
    "model": {"model"},
    "kernels": {"kernels"},
    "sql": {"sql", "model"},
    "network": {"network", "kernels"},
    "simulator": {"simulator", "network", "kernels", "model.errors", "files"},
    "families": {"families", "model", "kernels", "sql.shape", "sql.constants", "sql.compiler", "sql.conditions"},
    "pipeline": {"pipeline", "model", "families", "sql", "kernels"},
    "exchange": {"exchange", "database", "model", "sql", "spark.session"}
    | {f"families.offers.{name}" for name in ("constraint", "kernels", "matching", "subscription")},
    "database": {"model"},
    "relay": {"relay", "model", "sql", "kernels", "files", "terminal", "spark.session", "workloads"},
    "engine": {"pipeline", "model", "families", "sql", "kernels"},
    "embedded": {"pipeline", "model", "sql", "files"},
    "placed": {"pipeline", "model", "families"},
    "client": {"client", "model", "embedded"},
    "plain": {"pipeline", "model", "families", "sql"},
    "workloads": {"workloads", "model", "sql", "files"},
    "testing": {"testing", "engine", "placed", "pipeline", "model", "families", "sql", "kernels"},
    "durations": {"model"},
    "explaining": {"model", "families", "sql"},
    "files": {"model", "sql"},
    "endpoint": {"model"},
    "edge": {"edge", "pipeline", "sinks", "sources", "model", "files", "endpoint", "durations", "terminal", "signals"},
    "sources": {"sources", "pipeline", "model", "sql", "files", "endpoint", "terminal"},
    "sinks": {"sinks", "edge", "sources.jetstream", "pipeline", "model", "kernels", "files", "endpoint", "terminal"},
    "live": {"live", "sources", "sinks", "pipeline", "model", "families", "sql", "files", "endpoint", "signals"},
    "server": {"server", "live", "sources", "sinks", "pipeline", "model", "families", "sql", "files", "endpoint"}
    | {"edge", "explaining", "signals", "terminal", "database", "spark.run"},
    "signals": set(),
    "terminal": {"kernels", "signals"},
    "standing": {"engine", "kernels", "pipeline", "model", "families", "sql", "files", "terminal"},
    "painting": {"painting", "pipeline", "model", "kernels", "families", "sql.shape", "files", "terminal"},
    "spark": {"spark", "pipeline", "model", "families", "sql", "kernels", "workloads", "files", "terminal"}
    | {"signals", "endpoint", "sources", "sinks", "live", "edge"},
    "bench": {"bench", "engine", "placed", "pipeline", "model", "sql", "workloads", "spark", "sources", "sinks"}
    | {"network", "simulator", "kernels.arrays"},
    "cli": {"cli", "engine", "pipeline", "model", "families", "sql", "kernels", "workloads", "spark"}
    | {
        "bench",
        "client",
        "files",
        "terminal",
        "standing",
        "painting",
        "simulator",
        "placed",
        "plain",
        "relay.commands",
        "relay.workloads",
        "signals",
        "endpoint",
        "live",
        "sources",
        "server",
        "explaining",
        "durations",
        "edge",
        "sinks.places",
    },
}


def name_of(path):
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path, *, top_level=False):
    """Names of the modules a file imports, absolute; with `top_level` only those imported as soon as the file is."""
    return _all_and_first(path)[top_level]


@cache
def _all_and_first(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return _imported(path, ast.walk(tree)), _imported(path, _at_import(tree.body))


def _imported(path, nodes):
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}:{node.lineno}: relative import"
            found |= {f"tidings.{alias.name}" if node.module == "tidings" else node.module for alias in node.names}
    return found


def _at_import(body):
    for node in body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        yield node
        for field in ("body", "orelse", "handlers", "finalbody"):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from _at_import(getattr(node, field, []))


def inner(module):
    """The part of the name behind `tidings.`; None for other packages."""
    return module.removeprefix("tidings.") if module.startswith("tidings.") else None


def is_within(module, packages):
    return any(module == package or module.startswith(package + ".") for package in packages)


def inner_imports(path):
    return {found for module in imports(path) if (found := inner(module)) is not None}


def test_direction():
    wrong = {}
    for path in MODULES:
        name = name_of(path)
        # The root package has the version, and names what users import.
        allowed = ALLOWED[name.split(".")[0]] if name else {"client", "embedded", "model.errors"}
        wrong[name] = {found for found in inner_imports(path) - {"__version__"} if not is_within(found, allowed)}
    assert {name: found for name, found in wrong.items() if found} == {}


def test_families_do_not_know_each_other():
    common = ("spec", "protocols", "optional", "evaluator", "shown", "size")
    wrong = {}
    for path in (SOURCE / "families").rglob("*.py"):
        name = name_of(path)
        own = ".".join(name.split(".")[:2])
        shared = {f"families.{part}" for part in common} if path.parent.parent.name == "families" else {"families"}
        used = {found for found in inner_imports(path) if found.startswith("families")}
        wrong[name] = {found for found in used if not is_within(found, {own, *shared})}
    assert {name: found for name, found in wrong.items() if found} == {}


def test_only_spark_imports_pyspark():
    wrong = []
    for path in MODULES:
        name = name_of(path)
        # Benchmarks compare with Spark, but only when asked to: their imports are inside functions.
        used = {module.split(".")[0] for module in imports(path, top_level=is_within(name, {"bench"}))}
        if used & {"pyspark", "py4j"} and not is_within(name, {"spark", "relay.spark", "exchange.grid"}):
            wrong.append(name)
    assert wrong == []


def test_one_kind_of_engine_process_needs_spark():
    server = [path for path in MODULES if is_within(name_of(path), {"server"})]
    assert {name_of(path) for path in server if "tidings.spark" in path.read_text()} == {"server.engine.spark_process"}


def test_only_the_rim_of_the_exchange_knows_the_database():
    rim = {f"exchange.{name}" for name in ("auctions", "inbox", "outbox", "schema", "store")}
    using = {name_of(path) for path in MODULES if imports_any_of(path, {"sqlalchemy"})}
    assert {name for name in using if not is_within(name, {"server.registry", "database"})} == rim


def test_only_xml_documents_need_lxml():
    assert {name_of(path) for path in MODULES if imports_any_of(path, {"lxml"})} == {"relay.xml_document"}


def test_only_one_file_needs_highs():
    assert {name_of(path) for path in MODULES if imports_any_of(path, {"highspy"})} == {"relay.planning.highs"}


def test_relay_does_input_and_output_in_one_file():
    paths = [path for path in MODULES if is_within(name_of(path), {"relay"})]
    paths = [path for path in paths if not is_within(name_of(path), {"relay.commands"})]
    assert {name_of(path) for path in paths if imports_any_of(path, {"pathlib", "os", "time", "random"})} == {
        "relay.files"
    }


def test_relay_talks_to_other_processes_in_one_place():
    paths = [path for path in MODULES if name_of(path).startswith("relay")]
    talking = {name_of(path) for path in paths if imports_any_of(path, {"asyncio", "threading", "subprocess", "nats"})}
    assert talking == {f"relay.runtime.nats.{name}" for name in ("connection", "relay", "worker")}


COMMANDS = [
    path
    for folder in ("cli", "relay/commands")
    for path in (SOURCE / folder).glob("*.py")
    if path.stem == "main" or "def add_to(" in path.read_text()
]


@pytest.mark.parametrize("path", COMMANDS, ids=name_of)
def test_commands_import_nothing_heavy_before_they_run(path):
    allowed = {*sys.stdlib_module_names, "typer"}
    for module in imports(path, top_level=True):
        # The lists of benches and workloads are shown by --help; their packages import nothing else by themselves.
        light = ("tidings.__version__", "tidings.bench", "tidings.relay.workloads", "tidings.workloads")
        is_light = module in light or is_within(module, {"tidings.cli", "tidings.relay.commands"})
        assert module.split(".")[0] in allowed or is_light, module


def test_the_command_starts_without_the_heavy_libraries():
    heavy = "numpy numba pyarrow sqlglot pyspark pandas"
    code = f"import sys, tidings.cli.main; print(*(name for name in '{heavy}'.split() if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def imports_any_of(path, packages):
    return bool({module.split(".")[0] for module in imports(path)} & packages)


def test_nothing_imports_tests():
    tests = {path.stem for path in Path(__file__).parent.rglob("*.py")} | {"tests", "pytest"}
    assert [name_of(path) for path in MODULES if imports_any_of(path, tests)] == []


def test_nothing_imports_research():
    assert [name_of(path) for path in MODULES if imports_any_of(path, {"research"})] == []


def test_hypothesis_stays_in_the_testing_package():
    using = {name_of(path).split(".")[0] for path in MODULES if imports_any_of(path, {"hypothesis"})}
    assert using == {"testing"}


@pytest.mark.parametrize("package", ["model", "kernels", "families", "network", "pipeline"])
def test_the_core_does_no_input_or_output_and_knows_no_clock(package):
    forbidden = {
        "socket",
        "asyncio",
        "threading",
        "subprocess",
        "pathlib",
        "time",
        "requests",
        "urllib",
        "random",
        "logging",
    }
    # What is compiled is kept on disk by one module.
    paths = [path for path in (SOURCE / package).rglob("*.py") if name_of(path) != "kernels.jit"]
    used = {(name_of(path), module) for path in paths for module in imports(path) if module.split(".")[0] in forbidden}
    assert paths
    assert not used
