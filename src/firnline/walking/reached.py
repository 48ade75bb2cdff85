"""Marks by which files that walks reached are found: the same ones on both engines."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from firnline.model.locations import spellings
from firnline.ports.stores import RealNames
from firnline.walking.marks import marks_of

_LOCAL = "file:///"

REACHED = pa.schema(
    [
        ("identity", pa.string()),
        ("walk", pa.int32()),
        ("by_name", pa.bool_()),
        ("path_mark", pa.int64()),
        ("name_mark", pa.int64()),
    ]
)
"""A file is found by its marks. One that is found by its path alone has no mark of its name."""


def marked(names: pa.Array, number: int, by_name: bool, everywhere: bool, real: RealNames) -> pa.RecordBatch:
    """Returns identities as REACHED, each with the mark of the path that it really has. That of its last name is with
    those that links may lead to, and with all if they are found by name.
    """
    paths = [spellings(name).path for name in names.to_pylist()]
    really = real.column(names)
    reals = paths if really is names else [spellings(name).path for name in really.to_pylist()]
    last = pa.array([path.rpartition("/")[2] for path in paths], pa.string())
    found = marks(last)
    if not (by_name or everywhere):
        found = pc.if_else(pc.starts_with(names, _LOCAL), found, pa.scalar(None, pa.int64()))
    count = len(names)
    said = [names, pa.repeat(pa.scalar(number, pa.int32()), count), pa.repeat(pa.scalar(by_name), count)]
    return pa.record_batch([*said, marks(pa.array(reals, pa.string())), found], schema=REACHED)


def marks(texts: pa.Array) -> pa.Array:
    return pa.array(marks_of(pa.chunked_array([texts], pa.string())).view("int64"))
