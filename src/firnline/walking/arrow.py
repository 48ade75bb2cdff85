"""Arrow's columns of numpy's numbers and flags."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

_TYPES = {np.dtype(np.int64): pa.int64(), np.dtype(np.int8): pa.int8()}


def column_of(values: np.ndarray[tuple[int], Any]) -> pa.Array:
    """Returns the same as `pa.array`, which loads numpy's masked arrays to see that these are none: a twentieth of a
    small plan. Other types than flags and whole numbers are left to it.
    """
    if values.dtype == np.bool_:
        return _packed(pa.bool_(), len(values), np.packbits(values, bitorder="little"))
    known = _TYPES.get(values.dtype)
    return pa.array(values) if known is None else _packed(known, len(values), np.ascontiguousarray(values))


def _packed(kind: pa.DataType, length: int, values: np.ndarray[tuple[int], Any]) -> pa.Array:
    return pa.Array.from_buffers(kind, length, [None, pa.py_buffer(values)])
