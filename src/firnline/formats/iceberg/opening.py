"""Opening a manifest list or a manifest: its bytes, whole, and every trouble with it told with its name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc

from firnline.errors import FirnlineError, ObjectNotFound, UnreadableMetadata
from firnline.formats.avro import CorruptAvro
from firnline.model.files import File
from firnline.ports.stores import Get

REPAIR = "nothing was changed; without it nobody can tell which files are needed"


@contextmanager
def opened(store: Get, unit: File) -> Iterator[bytes]:
    """Hands out the unit's bytes. Raises UnreadableMetadata where it is missing, cut short or, inside, not decoded."""
    try:
        yield _whole(unit, store.get(unit.key))
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


def enough(entries: pa.RecordBatch, expects: int) -> None:
    """Returns where the manifests tell of at least as many data files as the snapshot does.

    Nothing says how long a list is, and one cut between two blocks still decodes: without its last manifests.
    Writers of version 1 may leave the counts out; then only a list without any manifest of data is seen.
    """
    data = entries.filter(pc.equal(pc.fill_null(entries.column("content"), 0), 0))
    counts = pc.add(count_of(data, "added"), count_of(data, "existing"))
    if counts.null_count:
        return
    found = pc.sum(counts).as_py() or 0
    if found < expects:
        raise CorruptAvro(f"it tells of {found} data files, its snapshot of {expects}; it was cut short")


def count_of(data: pa.RecordBatch, which: str) -> pa.Array:
    """Returns a column of counts; some writers use its older name."""
    return pc.coalesce(data.column(f"{which}_files_count"), data.column(f"{which}_data_files_count"))
