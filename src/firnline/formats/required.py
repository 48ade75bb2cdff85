"""Columns that every entry of a manifest must fill: one that says nothing stops the run."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from firnline.errors import UnreadableMetadata
from firnline.formats.opening import REPAIR


def required(found: pa.RecordBatch, column: str) -> pa.Array:
    """Returns the column, which has a value in every row."""
    values = found.column(column)
    if values.null_count:
        raise UnreadableMetadata(f"an entry has no {column}", hint=REPAIR)
    return values


def sizes_of(found: pa.RecordBatch, column: str) -> pa.Array:
    """Returns the column, in which no row is below zero."""
    sizes = required(found, column)
    if np.any(sizes.to_numpy() < 0):
        raise UnreadableMetadata(f"an entry has a negative {column}", hint=REPAIR)
    return sizes
