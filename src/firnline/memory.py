"""Freed memory, kept in a process that is ours: the C library would give it back, and every page of it costs a fault
when the next portion of units wants it. That is a tenth of a large plan.
"""

from __future__ import annotations

import ctypes
import functools

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""What glibc calls the two sizes from which on freed memory goes back to the system."""


@functools.cache
def keep_freed_memory() -> None:
    """Lets the C library keep what was freed, for the rest of this process. Does nothing where that is not glibc."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, 32 << 20)  # the most that it takes
        mallopt(_TRIM_THRESHOLD, 256 << 20)
