"""Which texts of a column may be equal to another: found by numbers, so that most are never compared as texts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

_WORD = 8
_WORDS = 8
"""Of each text so many words at its end count, where names differ. Texts that are alike in them are compared whole."""
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


def may_be_alike(texts: pa.ChunkedArray) -> np.ndarray[tuple[int], np.dtype[np.bool_]] | None:
    """Returns which texts may occur more than once; None where nearly all may.

    Equal texts always have equal marks, so a text whose mark is the only one of its kind is the only one of its kind.
    """
    found = [_marks(chunk) for chunk in texts.chunks] if texts.type == pa.string() else [None]
    if any(each is None for each in found):
        return None
    marks = np.concatenate([np.zeros(0, dtype=np.uint64), *found])
    ordered = np.sort(marks)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(twice) > len(marks) // 4:
        return None
    return np.isin(marks, twice) if len(twice) else np.zeros(len(marks), dtype=bool)


def _marks(texts: pa.Array) -> Any:
    """Returns a number for each text, which nothing but its own length and bytes decide; None where that cannot be: a
    text that is shorter than a word would be read with its neighbour's bytes, and one that is not there has none.
    """
    if not len(texts):
        return np.zeros(0, dtype=np.uint64)
    _, places, data = texts.buffers()
    bounds = np.frombuffer(places, dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    starts, ends = bounds[:-1], bounds[1:]
    sizes = ends - starts
    if texts.null_count or sizes.min() < _WORD:
        return None
    words: Any = np.ndarray(len(data) - _WORD + 1, dtype="<u8", buffer=data, strides=(1,))
    marks = sizes.astype(np.uint64)
    for number in range(1, _WORDS + 1):  # as often for every text: what else is in a chunk must not count
        marks = (marks ^ words[np.maximum(ends - number * _WORD, starts)]) * _SPREAD
        marks ^= marks >> _SHIFT
    return marks
