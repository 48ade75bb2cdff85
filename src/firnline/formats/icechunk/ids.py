"""Icechunk's ids: random bytes in its objects, Crockford's base 32 in the names of those objects and in refs.

Five bits make a letter, the first bits first, and zeros fill up the last one: 12 bytes are 20 letters. Of all texts
that mean the same bytes only that one is a name. Readers of Icechunk would also take small letters, or an O for a 0;
such a text names no object that a writer wrote.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from firnline.formats.icechunk.names import LETTERS

Octets = npt.NDArray[np.uint8]

WIDTH: Final = 12
"""Bytes of the id of a snapshot, a manifest or a chunk. A node's has 8."""

_LETTERS: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_ALPHABET: Final = np.frombuffer(_LETTERS.encode(), np.uint8)
_FEW: Final = 32
"""Up to so many ids it is quicker to name them one by one."""
_NO_LETTER: Final = 255
_VALUES: Final = np.full(256, _NO_LETTER, np.uint8)
_VALUES[_ALPHABET] = np.arange(32, dtype=np.uint8)


def is_letter(octets: Octets) -> npt.NDArray[np.bool_]:
    """Tells of each byte whether it is a letter that names are made of."""
    found: npt.NDArray[np.bool_] = _VALUES[octets] != _NO_LETTER
    return found


def letters_of(ids: Octets) -> Octets:
    """Returns the names of ids as rows of letters; an id is a row."""
    rows, width = ids.shape
    padded = np.zeros((rows, width + 1), np.uint16)
    padded[:, :width] = ids
    letters = np.empty((rows, -(-8 * width // 5)), np.uint8)
    for letter in range(letters.shape[1]):
        byte, bit = divmod(5 * letter, 8)
        pair = padded[:, byte] << 8 | padded[:, byte + 1]
        letters[:, letter] = _ALPHABET[pair >> (11 - bit) & 31]
    return letters


def names_of(ids: Octets) -> list[str]:
    """Returns the names of ids."""
    if len(ids) <= _FEW:
        return [name_of(each.tobytes()) for each in ids]
    letters = letters_of(ids)
    text, width = letters.tobytes().decode("ascii"), letters.shape[1]
    return [text[start : start + width] for start in range(0, len(text), width)]


def name_of(identifier: bytes) -> str:
    count = -(-8 * len(identifier) // 5)
    bits = int.from_bytes(identifier) << (5 * count - 8 * len(identifier))
    return "".join([_LETTERS[bits >> shift & 31] for shift in range(5 * count - 5, -5, -5)])


def ids_of(letters: Octets) -> tuple[Octets, npt.NDArray[np.bool_]]:
    """Returns the ids of names of snapshots, manifests or chunks, and which rows are such names: the id of any other
    row means nothing.
    """
    values = np.zeros((len(letters), LETTERS + 2), np.uint16)
    values[:, :LETTERS] = _VALUES[letters]
    known = (values[:, :LETTERS] != _NO_LETTER).all(axis=1) & (values[:, LETTERS - 1] & 15 == 0)
    ids = np.empty((len(letters), WIDTH), np.uint8)
    for byte in range(WIDTH):
        letter, bit = divmod(8 * byte, 5)
        three = values[:, letter] << 10 | values[:, letter + 1] << 5 | values[:, letter + 2]
        ids[:, byte] = three >> (7 - bit) & 255
    return ids, known


def column_of(ids: Octets) -> pa.Array:
    """Returns the ids as one Arrow column, which shares their memory."""
    whole = np.ascontiguousarray(ids)
    return pa.Array.from_buffers(pa.binary(whole.shape[1]), len(whole), [None, pa.py_buffer(whole)])
