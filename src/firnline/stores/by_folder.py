"""Listing the folders of several tables, each as its own catalog's settings reach it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from firnline.model.locations import stem_of, stems_around
from firnline.ports.listings import KeyRange, ListRanges
from firnline.ports.stores import shared

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class ByFolder:
    """Lists what lies in one of the folders `by_stem`, the innermost, by its own means, and the rest by others."""

    by_stem: Mapping[str, ListRanges]
    otherwise: ListRanges

    def split(self, prefix: str, wanted: int) -> Sequence[KeyRange]:
        return self._of(prefix).split(prefix, wanted)

    def batches(self, piece: KeyRange) -> Iterator[pa.RecordBatch]:
        return self._of(piece.folder).batches(piece)

    def share(self, parts: int) -> ByFolder:
        return ByFolder(
            {stem: shared(each, parts) for stem, each in self.by_stem.items()}, shared(self.otherwise, parts)
        )

    def _of(self, folder: str) -> ListRanges:
        known = (self.by_stem[stem] for stem in stems_around(stem_of(folder)) if stem in self.by_stem)
        return next(known, self.otherwise)
