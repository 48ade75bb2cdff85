"""What a command need not load: pyarrow looks for pandas at the first array it makes, and that takes a second."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType


class _NoPandas:
    """Says that there is no pandas, until Spark is here: it does without pyarrow's part of it, but asks for its own.

    Only for our own process: a program that uses firnline as a library may well want pandas from pyarrow.
    """

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if name == "pandas" and "pyspark" not in sys.modules:
            raise ModuleNotFoundError("firnline does not need it", name=name)


def without_pandas() -> None:
    if "pandas" not in sys.modules and not any(isinstance(each, _NoPandas) for each in sys.meta_path):
        sys.meta_path.insert(0, _NoPandas())
