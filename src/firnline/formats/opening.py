"""Opening a metadata object: its bytes, whole, and every trouble with it told with its name, a
column left empty too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa

from firnline.errors import FirnlineError, ObjectNotFound, UnreadableMetadata, UnsupportedFormat
from firnline.formats.avro import CorruptAvro, UnsupportedAvro
from firnline.model.files import File
from firnline.ports.stores import Get

REPAIR = "nothing was changed; without it nobody can tell which files are needed"


class Doubt(CorruptAvro):
    """A unit can be read, and says less than the table says of it: only the operator can tell which is right."""


@contextmanager
def opened(store: Get, unit: File) -> Iterator[bytes]:
    """Hands out the unit's bytes. Raises UnreadableMetadata where it is missing, cut short or, inside, not decoded."""
    with named(unit):
        yield _whole(unit, store.get(unit.key))


@contextmanager
def named(unit: File) -> Iterator[None]:
    """Raises every trouble of the unit with its name."""
    try:
        yield
    except ObjectNotFound as missing:
        raise UnreadableMetadata(f"{unit.kind} is missing: {unit.key}", hint=REPAIR) from missing
    except Doubt as doubt:
        raise UnreadableMetadata(f"{unit.kind} is in doubt: {unit.key}: {doubt}", hint=REPAIR) from doubt
    except UnsupportedAvro as strange:
        raise UnsupportedFormat(f"{unit.kind} is not understood: {unit.key}: {strange}", hint=REPAIR) from strange
    except CorruptAvro as damage:
        raise UnreadableMetadata(f"{unit.kind} is damaged: {unit.key}: {damage}", hint=REPAIR) from damage
    except MemoryError:
        raise UnreadableMetadata(f"{unit.kind} does not fit into memory: {unit.key}", hint=REPAIR) from None
    except FirnlineError as known:
        raise type(known)(f"{unit.kind} {unit.key}: {known.message}", known.hint) from known


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
