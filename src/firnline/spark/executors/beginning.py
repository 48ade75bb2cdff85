"""What each task of Python does first, so that PySpark's own housekeeping does not cost it more than the work."""

from __future__ import annotations

import gc
import sys
from zipimport import zipimporter

_aside: set[int] = set()
"""How many modules this process had each time that what they are made of was set aside."""


def begin_task() -> None:
    """Makes the housekeeping of PySpark cheap: what it does before and after every task, however small."""
    forget_zip_importers()
    set_modules_aside()


def forget_zip_importers() -> None:
    """Drops Python's importers of zip archives; whatever is still to be imported from one is found again.

    Before every task PySpark makes Python forget what it knows of its import paths, and every zip importer then reads
    the directory of its archive again. An executor has one for each package that it took from pyspark.zip: 0.2 s of
    every task, however small, on Python 3.11.
    """
    for path, importer in list(sys.path_importer_cache.items()):
        if isinstance(importer, zipimporter):
            sys.path_importer_cache.pop(path, None)


def set_modules_aside() -> None:
    """Lets the collector pass over what loaded modules are made of, once for each time that more were loaded.

    After every task PySpark collects all garbage, and the next stage waits for it: 0.1 s, nearly all of it a look at
    modules. What a task makes is collected as before. What another program's task left in the same process, and may
    still hold, is set aside with them until more is loaded: then all is looked at once, before it is set aside again.
    """
    if len(sys.modules) not in _aside:
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        _aside.add(len(sys.modules))
