"""A copy of firnline that a driver sent to executors brings the packages they lack in a folder of its own."""

from __future__ import annotations

import os
import sys

PACKED = "_packed"


def use_packed(package: str) -> None:
    """Makes the packages that came in the folder `package` importable; does nothing where none came.

    They go last, so that what an executor has itself stays in place for everybody who shares its Python processes.
    """
    packed = os.path.join(_unpacked(package), PACKED)
    if os.path.isdir(packed) and packed not in sys.path:
        sys.path.append(packed)


def _unpacked(package: str) -> str:
    """Returns the folder that a driver's archive is unpacked to. Code that came as a zip (Spark's py-files) is found
    before that folder, which lies beside the zip.
    """
    if os.path.isdir(package):
        return package
    return os.path.join(os.path.dirname(os.path.dirname(package)), "firnline")
