"""What a command spares itself, since its process is its own.

pyarrow looks for pandas at the first array it makes, and that takes a second. Linear algebra for numpy starts threads
that wait for work by spinning. And the C library gives memory back only to get it again.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from types import ModuleType

from firnline.memory import keep_freed_memory


class _NoPandas:
    """Says that there is no pandas, until Spark is here: it does without pyarrow's part of it, but asks for its own.

    Only for our own process: a program that uses firnline as a library may well want pandas from pyarrow.
    """

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if name == "pandas" and "pyspark" not in sys.modules:
            raise ModuleNotFoundError("firnline does not need it", name=name)


def settle_in() -> None:
    """Makes this process one that serves a single command."""
    without_pandas()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    keep_freed_memory()


def without_pandas() -> None:
    if "pandas" not in sys.modules and not any(isinstance(each, _NoPandas) for each in sys.meta_path):
        sys.meta_path.insert(0, _NoPandas())
