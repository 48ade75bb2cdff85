"""Whether a manifest list tells of all that its snapshot has."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from firnline.formats.avro import CorruptAvro

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]
_MANY = np.iinfo(np.int64).max


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
