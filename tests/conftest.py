"""Examples of property tests, and which tests run in the same process: see docs/testing.md.

`make test` tries the same examples everywhere and every time. `make explore` tries random ones.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, is_hypothesis_test, settings
from hypothesis.internal.conjecture import engine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from service_process import Service

settings.register_profile(
    "fixed",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=50,
    derandomize=True,
    print_blob=True,
    phases=[phase for phase in Phase if phase is not Phase.explain],
    report_multiple_bugs=False,
)
settings.register_profile("explore", parent=settings.get_profile("fixed"), derandomize=False, database=None)
settings.load_profile("fixed")

# A failing example of a whole run takes a second to try: five minutes, as by default, would be half of `make test`.
# There is no setting for it.
assert engine.MAX_SHRINKING_SECONDS == 300
engine.MAX_SHRINKING_SECONDS = 30

# Files whose tests need the same kernels, which are not compiled by the install: one worker compiles them once.
_PLANS = ("test_live_relay", "test_planner", "test_planning_latency", "test_relay_commands")
_TOGETHER = {f"tests/relay/{name}.py": "plans of relay" for name in _PLANS}

# What functions call that try examples without being decorated by hypothesis themselves.
TRIERS = {"check_family", "given", "run_state_machine_as_test"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--until", type=float, help="start no test after this time, in seconds since 1970")
    parser.addoption("--durations-by-file", action="store_true", help="show a table of the files that take longest")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks property tests; sorts and groups tests for workers (`--dist loadgroup`).

    Tests that start Spark come first, because they take longest. Those with the fixture `spark` share one session in one
    worker, and so do those with the fixture `service`; others that start Spark have a driver of their own and run anywhere.
    All other tests of a file stay together, for its fixtures and for compiled code, which every process has to load. Before
    xdist's own hook, which reads groups.
    """
    for item in items:
        assert isinstance(item, pytest.Function)
        if is_hypothesis_test(item.obj) or TRIERS.intersection(item.function.__code__.co_names):
            item.add_marker("hypothesis")
        if "spark" in item.fixturenames:
            item.add_marker(pytest.mark.xdist_group("spark"))
        elif "service" in item.fixturenames:
            is_on_spark = item.get_closest_marker("spark") is not None
            item.add_marker(pytest.mark.xdist_group("service on spark" if is_on_spark else "service"))
        elif item.get_closest_marker("spark") is None:
            file = item.nodeid.partition("::")[0]
            item.add_marker(pytest.mark.xdist_group(_TOGETHER.get(file, file)))
    items.sort(key=lambda item: item.get_closest_marker("spark") is None)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Groups have no effect unless they are in the names that xdist sees: with other versions of pytest, they may be lost."""
    if hasattr(session.config, "workerinput") and session.config.getoption("dist") == "loadgroup":
        assert all("@" in item.nodeid for item in session.items if item.get_closest_marker("xdist_group"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> bool | None:
    """Leaves out what is still to do when the time of `make explore` is over."""
    until = item.config.getoption("until")
    return True if until is not None and time.time() > until else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The table of docs/testing.md: seconds of workers, whose sum is that of all of them."""
    if not terminalreporter.config.getoption("durations_by_file"):
        return
    seconds, tests = Counter[str](), Counter[str]()
    for report in (report for reports in terminalreporter.stats.values() for report in reports):
        if isinstance(report, pytest.TestReport):
            seconds[report.fspath] += report.duration
            tests[report.fspath] += report.when == "call"
    rows = [("all", sum(tests.values()), sum(seconds.values()))]
    rows += [(f"`{file}`", tests[file], took) for file, took in seconds.most_common(25)]
    for file, count, took in rows:
        terminalreporter.write_line(f"| {file} | {count:,} | {took:,.0f} |")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One Spark session for all tests that run the job in this process."""
    # Few workers need these imports.
    from tidings.pipeline.warm import STEPS
    from tidings.spark.session import spark_session
    from tidings.terminal import compile_kernels

    compile_kernels(STEPS)
    folder = tmp_path_factory.mktemp("spark")
    with spark_session("tidings tests", "local[2]", folder / "spark.log") as session:
        yield session
    os.environ.pop("PYSPARK_PYTHON", None)


# Files whose tests of a service hold on Spark too.
_ON_BOTH_ENGINES = ("test_service_streams.py",)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "service" in metafunc.fixturenames and metafunc.definition.path.name in _ON_BOTH_ENGINES:
        on_spark = pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.extended])
        metafunc.parametrize("service", ["inline", on_spark], indirect=True, scope="session")


@pytest.fixture(scope="session")
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One `tidings serve` for all tests that do not kill it. `service.key` is an operator's, of the tenant `default`."""
    from service_process import Service

    engine = getattr(request, "param", "inline")
    options = ["--engine", engine, "--quota", "creations_per_second=100000", "--allow-private-webhooks"]
    with Service(tmp_path_factory.mktemp("service"), *options, has_keys=True) as found:
        yield found
