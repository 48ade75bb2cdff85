"""The two ways to run the kernel: as plain Python, or compiled, which costs seconds before the first byte."""

from __future__ import annotations

import functools
import threading
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from firnline.formats.avro import kernel

Way = Literal["auto", "python", "compiled"]

# Plain Python decodes about this much in the time that numba needs to be imported and to load its cache.
PATIENCE: Final = 4 << 20


@dataclass(frozen=True, slots=True)
class Engine:
    """The entry points of the kernel and the shapes in which they take bytes and numbers."""

    frame_files: Callable[..., tuple[int, int]]
    run_blocks: Callable[..., tuple[int, int]]
    gather: Callable[..., int]
    view: Callable[[bytes], Any]
    numbers: Callable[[Any], Any]
    room: Callable[[int], Any]  # bytes to write to


def _array_of(data: bytes) -> Any:
    return np.frombuffer(data, dtype=np.uint8)


def _empty(size: int) -> Any:
    return np.empty(size, dtype=np.uint8)


def _list_of(numbers: Any) -> list[int]:
    return list(np.asarray(numbers).tolist())  # numpy's own scalars are slow and would wrap around


PYTHON: Final = Engine(kernel.frame_files, kernel.run_blocks, kernel.gather, bytes, _list_of, bytearray)


def _compile() -> Engine:
    """The kernel, compiled: each loop gets a copy whose globals name the compiled callees."""
    from numba import njit

    scope: dict[str, Any] = dict(vars(kernel))
    for loop in kernel.LOOPS:
        copy = types.FunctionType(loop.__code__, scope, loop.__name__)
        try:
            scope[loop.__name__] = njit(cache=True, nogil=True)(copy)
        except RuntimeError:  # no folder to keep a cache in, as on some executors
            scope[loop.__name__] = njit(nogil=True)(copy)
    return Engine(scope["frame_files"], scope["run_blocks"], scope["gather"], _array_of, np.asarray, _empty)


class Choice:
    """Counts the bytes this process has seen, so that many small files get compiled loops too."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._compiled: Engine | None = None
        self._seen = 0

    def compiled(self) -> Engine:
        """The compiled engine, made once. Raises ImportError without numba."""
        with self._lock:
            if self._compiled is None:
                self._compiled = _compile()
            return self._compiled

    def by_size(self, size: int) -> Engine:
        """Plain Python until this process has seen `PATIENCE` bytes; then compiled, if numba is there."""
        with self._lock:
            self._seen += size
            worth_it = self._compiled is not None or self._seen > PATIENCE
        return self.compiled() if worth_it and _numba_is_there() else PYTHON


_CHOICE: Final = Choice()


@functools.cache
def _numba_is_there() -> bool:
    """Tells by importing it: an executor may have one that refuses the numpy beside it."""
    try:
        import numba  # noqa: F401
    except ImportError:
        return False
    return True


def engine_for(size: int, way: Way) -> Engine:
    """The engine for a file of `size` bytes; `way` forces one."""
    if way == "auto":
        return _CHOICE.by_size(size)
    return _CHOICE.compiled() if way == "compiled" else PYTHON
