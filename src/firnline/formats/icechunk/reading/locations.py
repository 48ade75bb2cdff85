"""Where virtual references lead. Those whose last part is the name of a chunk may lead to one: of this repository or of
another.

1. A writer makes an array of virtual references to chunks of an older snapshot.
2. That snapshot expires. Nothing but the virtual references leads to its chunks.
3. A purge takes them, and the array cannot be read any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import zstandard

from firnline.formats.icechunk import names
from firnline.formats.icechunk.ids import is_letter
from firnline.formats.icechunk.reading.damage import CorruptIcechunk
from firnline.formats.icechunk.reading.flat import FlatTables, Vectors, decoded

_BY_DICTIONARY: Final = 1
_LONGEST: Final = 1024
"""No reader of the format takes a longer location out of a compressed one."""
_FIELD: Final = "ChunkRef.location"


@dataclass(frozen=True, slots=True)
class Unpacking:
    """How a manifest compresses locations: by a dictionary, which is empty where it does not."""

    dictionary: bytes

    @staticmethod
    def of(root: FlatTables) -> Unpacking:
        (words,) = root.vectors("location_dictionary", 1).whole()
        (how,) = root.numbers("compression_algorithm", "<u1", default=_BY_DICTIONARY).tolist()
        return Unpacking(words if how == _BY_DICTIONARY else b"")

    def unpacked(self, frames: list[bytes]) -> Iterator[bytes]:
        """Yields the locations. Raises CorruptIcechunk where one cannot be told, or is longer than any is."""
        if not frames:
            return
        if not self.dictionary:
            raise CorruptIcechunk("locations are compressed, and it has no dictionary for them")
        try:
            one = zstandard.ZstdDecompressor(dict_data=zstandard.ZstdCompressionDict(self.dictionary))
            for frame in frames:
                if not 0 <= zstandard.frame_content_size(frame) <= _LONGEST:
                    raise CorruptIcechunk("a location is longer than any is")
                yield one.decompress(frame)
        except zstandard.ZstdError as damage:
            raise CorruptIcechunk(f"a location cannot be decompressed: {damage}") from damage


def chunk_locations(plain: Vectors, packed: Vectors, unpacking: Unpacking) -> frozenset[str]:
    """Returns the locations that end in the name of a chunk, plain ones and compressed ones."""
    frames = [each for each in packed.whole() if each]
    found = (*_ending_in_letters(plain), *unpacking.unpacked(frames))
    ends = ((each, each[-names.LETTERS - 1 :]) for each in found)
    return frozenset(decoded(each, _FIELD) for each, end in ends if _is_name(end))


def _ending_in_letters(texts: Vectors) -> list[bytes]:
    """Returns those of the texts that may end in a name: most lead to files of others, and are never made."""
    long = texts.counts > names.LETTERS
    starts, counts = texts.starts[long], texts.counts[long]
    tails = texts.buffer.rows(starts + counts - names.LETTERS, names.LETTERS)
    fits = is_letter(tails).all(axis=1)
    return Vectors(texts.buffer, starts[fits], counts[fits]).whole()


def _is_name(end: bytes) -> bool:
    return end[:1] == b"/" and names.is_object_name(end[1:].decode("ascii", "replace"))
