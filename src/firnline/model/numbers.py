"""Numbers of other libraries."""

from __future__ import annotations

from numbers import Integral
from typing import Any


def plain_number(value: Any) -> Any:
    """Returns a whole number of another library, such as one of a column of pandas, as an int; all else as it is."""
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, Integral) else value
