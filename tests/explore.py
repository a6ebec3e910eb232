"""`make explore MINUTES=n`: all property tests with random examples, in rounds, until the time is over.

Every round has a seed of its own. Tests that have failed are not tried again in later rounds; how to run each of them again
with the same examples is said at the end. What was found goes into the test as an `@example`.
"""

from __future__ import annotations

import json
import re
import secrets
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

PASSED, FAILED, NOTHING_LEFT = 0, 1, 5
"""Exit codes of pytest after which a round counts."""


def arguments(seed: int) -> list[str]:
    return ["-m", "hypothesis", "--hypothesis-profile=explore", f"--hypothesis-seed={seed}"]


def explore(minutes: float, *words: str) -> int:
    """The exit code. words: more arguments of pytest, such as the names of files."""
    end = time.time() + 60 * minutes
    failed: dict[str, int] = {}
    rounds = tried = 0
    while time.time() < end:
        seed = secrets.randbelow(2**32)
        rounds += 1
        print(f"round {rounds}, seed {seed}, {max(0, end - time.time()) / 60:.0f} minutes left", flush=True)
        with TemporaryDirectory() as folder:
            cache, report = Path(folder, "cache"), Path(folder, "report.xml")
            command = [sys.executable, "-m", "pytest", *arguments(seed), f"--until={end}", *words]
            command += ["--numprocesses=2", "--dist=loadgroup"]
            command += ["-o", f"cache_dir={cache}", f"--junitxml={report}", *(f"--deselect={test}" for test in failed)]
            code = subprocess.run(command, check=False).returncode
            if code not in (PASSED, FAILED, NOTHING_LEFT):
                return code
            failed |= dict.fromkeys(_last_failed(cache), seed)
            tried += int(ElementTree.parse(report).find("testsuite").attrib["tests"])
        if code == NOTHING_LEFT:
            break
    print(f"\n{tried} tests in {rounds} rounds, {len(failed)} failed")
    for test, seed in failed.items():
        print(f"  pytest {' '.join(arguments(seed))} '{test}'")
    return 1 if failed else 0


def _last_failed(cache: Path) -> list[str]:
    """Names of the tests that failed, as pytest takes them: without the group that is added for workers."""
    kept = cache / "v" / "cache" / "lastfailed"
    return [re.sub(r"@[^@\]]*$", "", test) for test in json.loads(kept.read_text())] if kept.exists() else []


if __name__ == "__main__":
    sys.exit(explore(float(sys.argv[1]), *sys.argv[2:]))
