"""Works without the power of root over files, so that a test that root runs is refused what its user would be."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

_VERSION = 0x20080522
_OVER_FILES = 0b110
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH."""


class _Header(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


class _Sets(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32 * 3) for name in ("low", "high")]


@contextmanager
def as_a_user() -> Iterator[None]:
    """What the mode of a folder or a file forbids its owner is refused, in this thread and in those that it starts."""
    libc, had = ctypes.CDLL(None, use_errno=True), _Sets()
    if libc.capget(ctypes.byref(_Header(_VERSION)), ctypes.byref(had)):
        raise OSError(ctypes.get_errno(), "capget")
    low = (had.low[0] & ~_OVER_FILES, had.low[1], had.low[2])
    _set(libc, _Sets((ctypes.c_uint32 * 3)(*low), had.high))
    try:
        yield
    finally:
        _set(libc, had)


def _set(libc: ctypes.CDLL, sets: _Sets) -> None:
    if libc.capset(ctypes.byref(_Header(_VERSION)), ctypes.byref(sets)):
        raise OSError(ctypes.get_errno(), "capset")
