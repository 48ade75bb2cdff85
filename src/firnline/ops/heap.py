"""The cycle collector, kept from looking at the same old objects again and again while many new ones are made."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def heap_at_rest() -> Iterator[None]:
    """While the block runs, the collector looks at what is new alone: not at the modules and documents that were there.

    A purge makes a few objects for each file, and each full collection costs what a thousand deletes do. Afterwards all
    objects are collected as before, so a process that lives long keeps nothing.
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
