"""Numbers by which equal texts are found: sorted and sent at a fraction of what texts cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

Marks = np.ndarray[tuple[int], np.dtype[np.uint64]]

_WORD = 8
_TAIL = 64
"""Of each text so many bytes at its end count, where names differ. Texts that are alike in them are compared whole."""
_SPREAD = np.cumprod(np.full(1 + _TAIL // _WORD, 0x9E3779B97F4A7C15, dtype=np.uint64))
"""What the length and each word are multiplied with."""


def marks_of(texts: pa.ChunkedArray) -> Marks:
    """Returns a number for each text, which nothing but its own bytes decide: equal texts have equal marks."""
    plain = texts.cast(pa.string())
    plain = plain.fill_null("") if plain.null_count else plain
    return np.concatenate([np.zeros(0, dtype=np.uint64), *(_marks(chunk) for chunk in plain.chunks)])


def may_be_alike(marks: Marks) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Returns which texts may occur more than once: one whose mark is the only one of its kind does not. Where many do
    it is not worth finding out which: then all may.
    """
    ordered = np.sort(marks)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(twice) > len(marks) // 2:
        return np.ones(len(marks), dtype=bool)
    return np.isin(marks, twice) if len(twice) else np.zeros(len(marks), dtype=bool)


def _marks(texts: pa.Array) -> Marks:
    if not len(texts):
        return np.zeros(0, dtype=np.uint64)
    _, places, data = texts.buffers()
    bounds = np.frombuffer(places, dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    starts, ends = bounds[:-1], bounds[1:]
    sizes = ends - starts
    if sizes.min() < _WORD:  # read as a word, a shorter text would count with its neighbour's bytes
        padded = [text.encode("utf-8", "surrogatepass").ljust(_WORD, b"\0") for text in texts.to_pylist()]
        return _marks(pa.array(padded, pa.binary()))
    marks: Marks = sizes.astype(np.uint64) * _SPREAD[0] + _tails(data, starts, ends) @ _SPREAD[1:]
    return marks


def _tails(data: pa.Buffer, starts: Any, ends: Any) -> Any:
    """Returns the last words of each text. What else is in a chunk does not count: of a text that is shorter than all
    the words, its first one stands for those that would lie before it.
    """
    if (ends - starts).min() >= _TAIL:
        tails: Any = np.ndarray(len(data) - _TAIL + 1, dtype=f"V{_TAIL}", buffer=data, strides=(1,))
        return tails[ends - _TAIL].view("<u8").reshape(len(ends), -1)
    words: Any = np.ndarray(len(data) - _WORD + 1, dtype="<u8", buffer=data, strides=(1,))
    return np.stack([words[np.maximum(ends - back, starts)] for back in range(_TAIL, 0, -_WORD)], axis=1)
