"""Opening a metadata object: its bytes, whole, and every trouble with it told with its name, a
column left empty too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa

from firnline.errors import UnreadableMetadata
from firnline.formats.avro import CorruptAvro
from firnline.formats.damage import REPAIR, named
from firnline.model.files import File
from firnline.ports.stores import Get


class Doubt(CorruptAvro):
    """A unit can be read, and says less than the table says of it: only the operator can tell which is right."""

    told = "is in doubt"


@contextmanager
def opened(store: Get, unit: File) -> Iterator[bytes]:
    """Hands out the unit's bytes. Raises UnreadableMetadata where it is missing, cut short or, inside, not decoded."""
    with named(unit.kind, unit.key):
        yield _whole(unit, store.get(unit.key))


def _whole(unit: File, data: bytes) -> bytes:
    """Returns the data where it is as long as its list says.

    A manifest cut exactly between two blocks still decodes, with fewer files: they would look like garbage.
    """
    if unit.size is not None and len(data) != unit.size:
        raise CorruptAvro(f"it has {len(data)} bytes, its list says {unit.size}")
    return data


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
