"""Opening a manifest list or a manifest: its bytes, whole, and every trouble with it told with its name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from firnline.errors import FirnlineError, ObjectNotFound, UnreadableMetadata
from firnline.formats.avro import CorruptAvro
from firnline.model.files import File
from firnline.ports.stores import Get

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]
_MANY = np.iinfo(np.int64).max
REPAIR = "nothing was changed; without it nobody can tell which files are needed"


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
    except CorruptAvro as damage:
        raise UnreadableMetadata(f"{unit.kind} is damaged: {unit.key}: {damage}", hint=REPAIR) from damage
    except FirnlineError as known:
        raise type(known)(f"{unit.kind} {unit.key}: {known.message}", known.hint) from known


def _whole(unit: File, data: bytes) -> bytes:
    """Returns the data where it is as long as its list says.

    A manifest cut exactly between two blocks still decodes, with fewer files: they would look like garbage.
    """
    if unit.size is not None and len(data) != unit.size:
        raise CorruptAvro(f"it has {len(data)} bytes, its list says {unit.size}")
    return data


def enough(entries: pa.RecordBatch, of: Numbers, expects: Sequence[int | None]) -> None:
    """Returns where the manifests of every list tell of at least as many data files as its snapshot does.

    Nothing says how long a list is, and one cut between two blocks still decodes: without its last manifests.
    Writers of version 1 may leave the counts out; then only a list without any manifest of data is seen.
    """
    is_data = pc.equal(pc.fill_null(entries.column("content"), 0), 0).to_numpy(zero_copy_only=False)
    counts = pc.add(count_of(entries, "added"), count_of(entries, "existing"))
    untold = counts.is_null().to_numpy(zero_copy_only=False)
    found = np.zeros(len(expects), dtype=np.int64)
    np.add.at(found, of[is_data], pc.fill_null(counts, 0).to_numpy()[is_data])
    found[of[is_data & untold]] = _MANY
    for told, expected in zip(found.tolist(), expects, strict=True):
        if told < (expected or 0):
            raise CorruptAvro(f"it tells of {told} data files, its snapshot of {expected}; it was cut short")


def count_of(data: pa.RecordBatch, which: str) -> pa.Array:
    """Returns a column of counts; some writers use its older name."""
    return pc.coalesce(data.column(f"{which}_files_count"), data.column(f"{which}_data_files_count"))
