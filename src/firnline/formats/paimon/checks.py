"""What entries of manifests must say before anybody believes them. What they do not say stops the run."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from firnline.errors import UnreadableMetadata, UnsupportedFormat
from firnline.formats.opening import REPAIR
from firnline.formats.required import required

_ADD, _DELETE = 0, 1


def ops_of(found: pa.RecordBatch) -> pa.Array:
    """Returns +1 for an entry that adds its file, -1 for one that takes it away."""
    numbers = required(found, "_KIND").to_numpy()
    if np.any((numbers != _ADD) & (numbers != _DELETE)):
        raise UnsupportedFormat("an entry is neither added nor deleted", hint="a newer version of firnline may know it")
    return pa.array(np.where(numbers == _ADD, 1, -1).astype(np.int8))


def names_of(found: pa.RecordBatch, column: str) -> pa.Array:
    """Returns the names; one with a slash would name a file somewhere else."""
    names = required(found, column)
    if pc.any(pc.or_(pc.match_substring(names, "/"), pc.equal(names, ""))).as_py():
        raise UnreadableMetadata(f"an entry's {column} is not the name of a file", hint=REPAIR)
    return names


def plain_name(name: str) -> str:
    if not name or "/" in name:
        raise UnreadableMetadata(f"{name!r} is not the name of a file", hint=REPAIR)
    return name


def refuse_unknown_version(found: pa.RecordBatch, known: int, what: str) -> None:
    strange = set(pc.unique(required(found, "_VERSION")).to_pylist()) - {known}
    if strange:
        raise UnsupportedFormat(f"{what} has the version {strange.pop()}", hint="nothing was changed")
