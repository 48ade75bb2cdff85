"""The two ways to run the kernel: as plain Python, or compiled, which costs time before the first byte."""

from __future__ import annotations

import logging
import math
import threading
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from firnline.extras import has, how_to_get
from firnline.formats.avro import kernel

_LOG: Final = logging.getLogger("firnline")

Way = Literal["auto", "python", "compiled"]

# Plain Python decodes about this much in the time that loading the compiled loops takes, or building them.
TO_LOAD: Final = 512 << 10
TO_BUILD: Final = 8 << 20


@dataclass(frozen=True, slots=True)
class KernelEngine:
    """The entry points of the kernel and the shapes in which they take numbers and room."""

    frame_files: Callable[..., int]
    run_blocks: Callable[..., int]
    gather: Callable[..., int]
    numbers: Callable[[Any], Any]
    room: Callable[[int], Any]  # bytes to write to


def _empty(size: int) -> Any:
    return np.empty(size, dtype=np.uint8)


def _list_of(numbers: Any) -> list[int]:
    return list(np.asarray(numbers).tolist())  # numpy's own scalars are slow and would wrap around


PYTHON: Final = KernelEngine(kernel.frame_files, kernel.run_blocks, kernel.gather, _list_of, bytearray)


class Choice:
    """Counts the bytes this process has seen, so that many small files get compiled loops too."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._compiled: KernelEngine | None = None
        self._seen = 0
        self._patience: float = TO_LOAD

    def compiled(self) -> KernelEngine:
        """The compiled engine, made once. Raises ImportError or RuntimeError where it cannot be."""
        with self._lock:
            if self._compiled is None:
                self._compiled = _compiled(machine_code().load())
            return self._compiled

    def by_size(self, size: int) -> KernelEngine:
        """Plain Python until this process has seen what pays for loading the compiled loops, or for building them."""
        with self._lock:
            self._seen += size
            if self._compiled is None and self._seen > self._patience:
                self._compiled = self._tried(may_build=self._seen > TO_BUILD)
            return self._compiled or PYTHON

    def _tried(self, *, may_build: bool) -> KernelEngine | None:
        self._patience = math.inf if may_build else TO_BUILD
        try:
            code = machine_code()
            return _compiled(code.load()) if may_build or code.kept() else None
        except (ImportError, RuntimeError, OSError):  # such as on an executor whose numba refuses its numpy
            if may_build and not has("fast"):
                _LOG.warning("large metadata is read slowly here: %s", how_to_get("fast"))
            return None


def machine_code() -> types.ModuleType:
    """The loader: most tables are too small for it, so most processes never import it."""
    from firnline.formats.avro import machine_code as found

    return found


def _compiled(entries: Mapping[str, Callable[..., int]]) -> KernelEngine:
    return KernelEngine(**entries, numbers=np.ascontiguousarray, room=_empty)


_CHOICE: Final = Choice()


def engine_for(size: int, way: Way) -> KernelEngine:
    """The engine for a file of `size` bytes; `way` forces one."""
    if way == "auto":
        return _CHOICE.by_size(size)
    return _CHOICE.compiled() if way == "compiled" else PYTHON
