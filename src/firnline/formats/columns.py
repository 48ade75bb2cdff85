"""Columns of paths: the canonical identity of a whole Arrow array at once."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from firnline.model.locations import DOTTED, identity
from firnline.ports.expanding import Expanded

ROW_SCHEMA = pa.schema(
    [
        pa.field("identity", pa.string(), nullable=False),
        pa.field("key", pa.string(), nullable=False),
        pa.field("size", pa.int64()),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("opens", pa.bool_(), nullable=False),
    ]
)
"""What `expand` returns: ROW_COLUMNS with their types."""

_STEM = re.compile(r"^(?:[A-Za-z][A-Za-z0-9+.\-]*:)?(?://[^/]*)?/")


def nothing_named() -> Expanded:
    """Returns the answer about no units: who leaves out units that are known may have none left."""
    return Expanded(pa.RecordBatch.from_pylist([], schema=ROW_SCHEMA), np.empty(0, dtype=np.int64))


def identities(keys: pa.Array) -> pa.Array:
    """Returns the identity of each key; equal to `identity` one by one, which it falls back to.

    Nearly every manifest spells all its paths alike, so one look at the common stem does for the whole column.
    """
    if len(keys) == 0:
        return keys
    stem = _STEM.match(keys[0].as_py())
    if stem is None or not _spelled_alike(keys, stem[0]):
        return pa.array([identity(key) for key in keys.to_pylist()], keys.type)
    canonical = identity(stem[0])
    return keys if canonical == stem[0] else pc.binary_replace_slice(keys, 0, len(stem[0].encode()), canonical)


def first_dotted(keys: pa.Array) -> str | None:
    """Returns the first key with a segment `.` or `..`; equal to `is_dotted` one by one.

    Most columns are cleared by plain searches; the expression only runs where one of them finds something.
    """
    joined = _joined(keys)
    if not any(sign in joined for sign in (b"/.", b":.")) and not pc.any(pc.starts_with(keys, ".")).as_py():
        return None
    found = keys.filter(pc.match_substring_regex(keys, DOTTED))
    return str(found[0].as_py()) if len(found) else None


def _joined(texts: pa.Array) -> bytes:
    """Returns all texts in one piece. What is found in it may span two of them; what is not found is in none."""
    if len(texts) == 0:
        return b""
    # A Spark session may hand out strings with offsets of 64 bits: read as 32, they would end in the middle.
    texts = texts if texts.type == pa.string() else texts.cast(pa.string())
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, dtype=np.int32)
    start, end = int(ends[texts.offset]), int(ends[texts.offset + len(texts)])
    return data.slice(start, end - start).to_pybytes() if data is not None else b""


def _spelled_alike(keys: pa.Array, stem: str) -> bool:
    """Tells whether every key is the stem and then a path without doubled slashes.

    The doubled slashes are counted in one piece: where each key has those of the stem, and there are no more, no key
    has another.
    """
    if _joined(keys).count(b"//") != stem.count("//") * len(keys):
        return False
    return bool(pc.all(pc.starts_with(keys, stem)).as_py())
