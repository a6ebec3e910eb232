"""How compiled functions are compiled, and how their machine code is kept on disk: one decorator for all of them.

Numba does the work; `kernel` adds four things that numba does not do by itself:

- Functions that only other kernels call are compiled into their callers and nowhere else. Numba would give each of them a
  wrapper for Python, optimise it in full and make machine code of it, although nobody ever calls that.
- Machine code on disk is used only while every source it was made from is as it was: a kernel's own file and all files of
  this package and its own that it imports, directly or not. Numba looks at the kernel's own file alone.
- A kernel is compiled by one process at a time; others that need it wait and then load it.
- Garbage collection pauses while a kernel is compiled: numba makes millions of objects, few of which are garbage.

Machine code lies beside the sources, or, where that folder is not writable, in the user's cache folder. NUMBA_CACHE_DIR
names another place.

With TIDINGS_CHECKED=1 in the environment kernels check what they read and write, for tests: an index outside of an array
raises an IndexError, and so does reading a version of a row that has been freed. Machine code of such kernels is kept apart.
"""

from __future__ import annotations

import gc
import hashlib
import os
import pickle
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from numba import _dynfunc
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    InTreeCacheLocator,
    UserProvidedCacheLocator,
    UserWideCacheLocator,
)
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.registry import CPUDispatcher
from numba.core.targetconfig import ConfigStack
from numba.core.typed_passes import NativeLowering

try:
    import fcntl
except ImportError:  # no file locks on this system: two processes may compile the same kernel, the second in vain
    fcntl = None  # type: ignore[assignment]

PACKAGE = Path(__file__).parents[1]
NAME = "tidings"
CHECKED = os.environ.get("TIDINGS_CHECKED") == "1"
_OPTIONS = {"nopython": True, "no_cfunc_wrapper": True, **({"boundscheck": True} if CHECKED else {})}


def announce(name: str) -> None:
    """Called before a kernel is compiled because it is not on disk; replaced by those who tell somebody."""


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compiles a function when it is first called; `options` are those of numba's njit."""

    def decorate(function: Callable[..., Any]) -> Kernel:
        return Kernel(function, targetoptions={**_OPTIONS, **options})

    return decorate if function is None else decorate(function)


uncounted = kernel(_nrt=False)
"""Decorates functions that allocate nothing, for loops: numba counts no references to their arrays.

Arrays come in tuples of a dozen; to count references to each of them, whenever a function gets one, took up to three quarters
of the time. The caller holds all of them while a kernel runs. Whoever calls functions that return arrays must count: numba
refuses to compile it otherwise.
"""


class Kernel(CPUDispatcher):
    """A compiled function as Python calls it. Other kernels that call the function get it from `_inner`."""

    def __init__(self, function: Callable[..., Any], targetoptions: dict[str, Any]) -> None:
        super().__init__(function, targetoptions=targetoptions)
        self._cache = _KernelCache(function)
        self._inner: dict[bool, CPUDispatcher] = {}
        """By whether references are counted."""

    @property
    def inner(self) -> CPUDispatcher:
        """The same function for callers that are compiled themselves: without a wrapper for Python.

        It counts references to arrays if the caller does. One that is not `uncounted` would else be as whoever called it first
        in this process, and arrays that it returns would be freed by callers that expect them to be counted.
        """
        caller = ConfigStack.top_or_none()
        counts = bool(self.targetoptions.get("_nrt", caller is None or caller.nrt))
        if counts not in self._inner:
            options = {**self.targetoptions, "_nrt": counts, "no_cpython_wrapper": True}
            self._inner[counts] = CPUDispatcher(self.py_func, targetoptions=options, pipeline_class=_InnerCompiler)
        return self._inner[counts]

    @property
    def is_compiling(self) -> Any:
        """How many compilations of the function are under way; tells numba of recursion."""
        return super().is_compiling or any(inner.is_compiling for inner in self._inner.values())

    def get_call_template(self, args: Any, kws: Any) -> Any:
        return self.inner.get_call_template(args, kws)

    def get_overload(self, sig: Any) -> Any:
        return self.inner.get_overload(sig)

    def get_compile_result(self, sig: Any) -> Any:
        return self.inner.get_compile_result(sig)

    def compile(self, sig: Any) -> Any:
        """The compiled function for arguments of some types, from disk if it is there."""
        known = set(self.overloads)
        try:
            with _no_garbage_collection():
                entry_point = super().compile(sig)
        finally:
            self._cache.unlock()
        codegen = self.targetctx.codegen()
        for arguments in self.overloads.keys() - known:
            # Inner functions are in no library that is loaded: what they refer to is set here instead of there.
            for environment in self.overloads[arguments]._find_referenced_environments():
                codegen.set_env(environment.env_name, environment)
        return entry_point


class _InnerLibrary(JITCodeLibrary):
    """Code that is linked into that of its callers, and optimised in full there."""

    def _optimize_final_module(self) -> None:
        codegen = self._codegen
        options = {"loop_vectorize": False, "slp_vectorize": False, "opt": codegen._opt_level, "cost": "cheap"}
        passes, builder = codegen._module_pass_manager(**options)
        passes.run(self._final_module, builder)

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _InnerLowering(NativeLowering):
    """Makes LLVM code of a function, and no machine code."""

    _name = "tidings_inner_lowering"

    def run_pass(self, state: Any) -> bool:
        state.library = _InnerLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        state.library.finalize()
        lowered = state["cr"]
        function = lowered.fndesc
        # Numba knows compiled functions by the object Python would call; this one would crash, and nobody has it.
        name = function.qualname.split(".")[-1]
        handle = _dynfunc.make_function(function.lookup_module(), name, "", 0, lowered.env, (state.library,))
        state.targetctx.insert_user_function(handle, function, [state.library])
        state["cr"] = lowered._replace(cfunc=handle)
        return True


class _InnerCompiler(CompilerBase):
    """Numba's compiler with `_InnerLowering` as its last step."""

    def define_pipelines(self) -> list[Any]:
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        pipeline._finalized = False
        pipeline.passes = [
            (_InnerLowering if step is NativeLowering else step, about) for step, about in pipeline.passes
        ]
        pipeline.finalize()
        return [pipeline]


@cache
def source_stamp(source: Path) -> bytes:
    """Changes whenever a source file, or one of this or its package that it imports, directly or not, is another."""
    found: dict[Path, bytes] = {}
    waiting = [source]
    own = _package_of(source)
    while waiting:
        path = waiting.pop()
        if path not in found:
            found[path], imported = _read(path, own)
            waiting.extend(imported)
    relative = {_relative(path) if path != source else "": digest for path, digest in found.items()}
    return hashlib.sha256(repr(sorted(relative.items())).encode()).digest()


_IMPORT = re.compile(r"^\s*from (\w[\w.]*) import (\([^)]*\)|[^\n]*)", re.MULTILINE)


def _package_of(source: Path) -> Path:
    """The folder of the outermost package that a source file is in."""
    folder = source.parent
    while (folder.parent / "__init__.py").is_file():
        folder = folder.parent
    return folder


def _relative(path: Path) -> str:
    return str(path.relative_to(PACKAGE if path.is_relative_to(PACKAGE) else _package_of(path).parent))


@cache
def _read(path: Path, own: Path) -> tuple[bytes, tuple[Path, ...]]:
    """Digest of a source file, and the files that it imports of this package and of the one in the folder `own`."""
    text = path.read_text(encoding="utf-8")
    imported = []
    for module, names in _IMPORT.findall(text):
        package, *parts = module.split(".")
        if package not in (NAME, own.name):
            continue
        folder = (PACKAGE if package == NAME else own).joinpath(*parts)
        imported += [folder.with_suffix(".py"), folder / "__init__.py"]
        imported += [folder / f"{name}.py" for name in re.findall(r"\w+", names)]
    return hashlib.sha256(text.encode()).digest(), tuple(path for path in imported if path.is_file())


class _Stamped:
    """A place on disk whose contents depend on all sources of a kernel."""

    _py_file: str

    def get_source_stamp(self) -> bytes:
        return source_stamp(Path(self._py_file))


class _Provided(_Stamped, UserProvidedCacheLocator):
    pass


class _BesideSources(_Stamped, InTreeCacheLocator):
    pass


class _OfUser(_Stamped, UserWideCacheLocator):
    pass


class _KernelCacheImpl(CompileResultCacheImpl):
    _locator_classes = (_Provided, _BesideSources, _OfUser)

    def get_filename_base(self, fullname: str, abiflags: str) -> str:
        base: str = super().get_filename_base(fullname, abiflags)
        return f"{base}-checked" if CHECKED else base


class _KernelCache(FunctionCache):
    """Machine code of one kernel on disk."""

    _impl_class = _KernelCacheImpl

    _lock: int | None = None

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled kernel, or None: then the caller is to compile it, and no other process does so until `unlock`."""
        found = self._load(sig, target_context)
        if found is None and fcntl is not None and self._lock is None:
            self._lock = os.open(Path(self._cache_path, f"{self._impl.filename_base}.lock"), os.O_CREAT | os.O_RDWR)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            found = self._load(sig, target_context)
        if found is None:
            announce(f"{self._py_func.__module__}.{self._py_func.__name__}")
        return found

    def _load(self, sig: Any, target_context: Any) -> Any:
        """What numba finds on disk. Machine code of a version whose modules had other names cannot be read: it is forgotten."""
        try:
            return super().load_overload(sig, target_context)
        except (ImportError, AttributeError, EOFError, pickle.UnpicklingError):
            self.flush()
            return None

    def unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
