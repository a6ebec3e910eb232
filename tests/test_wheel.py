"""The wheel, built from the sources and installed into an environment of its own, works as a user's would."""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
CATALOG = "CREATE TABLE stocks (symbol TEXT PRIMARY KEY, price DOUBLE);"
SUBSCRIPTION = '{"id": "s1", "sql": "SELECT symbol FROM stocks WHERE price >= 10"}'
CHANGE = '{"seq": 1, "table": "stocks", "op": "insert", "row": {"symbol": "A", "price": 11}}'


def build(folder: Path) -> Path:
    sources = folder / "sources"
    for name in ("src", "research"):
        shutil.copytree(ROOT / name, sources / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, sources)
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--wheel-dir", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, str(sources)], check=True)
    return next(folder.glob("tidings-*.whl"))


def install(wheel: Path, folder: Path) -> Path:
    """Where the environment's programs are. What the wheel depends on is taken from the environment of the tests."""
    venv.create(folder, with_pip=False)
    bin = folder / "bin"
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))
    target = ["--python", str(bin / "python"), "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([sys.executable, "-m", "pip", *target, str(wheel)], check=True)
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return bin


def test_the_wheel_installs_and_replays(tmp_path):
    wheel = build(tmp_path)
    files = zipfile.ZipFile(wheel).namelist()
    assert "tidings/spark/log4j2.properties" in files
    # Neither `research` nor anything else beside the product.
    assert {name.partition("/")[0].partition("-")[0] for name in files} == {"tidings"}
    bin = install(wheel, tmp_path / "environment")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(*command: str) -> str:
        done = subprocess.run(
            [str(bin / command[0]), *command[1:]], cwd=tmp_path, env=environment, check=True, capture_output=True
        )
        return done.stdout.decode()

    assert str(tmp_path) in run("python", "-c", "import tidings; print(tidings.__file__)")
    assert "replay" in run("tidings", "--help")
    for name, text in (("catalog.sql", CATALOG), ("subscriptions.jsonl", SUBSCRIPTION), ("changes.jsonl", CHANGE)):
        (tmp_path / name).write_text(text + "\n")
    files = [f"--{name.partition('.')[0]}={name}" for name in ("catalog.sql", "subscriptions.jsonl", "changes.jsonl")]
    run("tidings", "replay", *files, "--out=out.jsonl")
    assert (tmp_path / "out.jsonl").read_text().splitlines() == [
        '{"subscription": "s1", "seq": 0, "snapshot": true, "changes": []}',
        '{"subscription": "s1", "seq": 1, "snapshot": false, "changes": [{"op": "insert", "row": {"symbol": "A"}}]}',
    ]
