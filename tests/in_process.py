"""`tidings` as a function: commands run in this process, which need not start, nor import and load what was loaded before."""

from __future__ import annotations

import gc
import io
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from subprocess import CompletedProcess

from tidings.cli.main import main


def tidings(folder: Path, *words: str) -> CompletedProcess[str]:
    """Runs a command in a folder; gives what a process of its own would have given: exit code and both outputs."""
    code, out, err = 0, io.StringIO(), io.StringIO()
    arguments, threshold = sys.argv, gc.get_threshold()
    sys.argv = ["tidings", *words]
    try:
        with chdir(folder), redirect_stdout(out), redirect_stderr(err):
            main()
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        sys.argv = arguments
        gc.set_threshold(*threshold)
    return CompletedProcess(words, code, out.getvalue(), err.getvalue())
