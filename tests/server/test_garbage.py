"""What has been set aside stays until all objects are looked through, and goes then."""

from __future__ import annotations

import subprocess
import sys

_RUN = """
import time, weakref
from tidings.server.garbage import Collector

class Thing:
    pass

def cycle():
    thing = Thing()
    thing.itself = thing
    return thing

collector = Collector()
old = cycle()
now = time.monotonic()
collector.tick(now + 11)
seen = weakref.ref(old)
del old
young = weakref.ref(cycle())
collector.tick(now + 12)
print(young() is not None)
collector.tick(now + 22)
print(young() is None, seen() is None)
collector.tick(now + 700)
print(seen() is None)
"""


def test_a_collector_sets_aside_what_lives() -> None:
    done = subprocess.run([sys.executable, "-c", _RUN], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True", "False", "True"]
