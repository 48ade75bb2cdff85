"""Which of many folders touch some: what lies in them, and what they lie in, without a look at all the others."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from firnline.model.locations import stem_of, stems_around

Owner = TypeVar("Owner")


class Touching(Generic[Owner]):
    """Folders, sorted, each with whom it is of."""

    def __init__(self, folders: Iterable[tuple[str, Owner]]) -> None:
        pairs = list(folders)
        self._owners: Sequence[Owner] = [owner for _, owner in pairs]
        self._sorted = sorted((stem_of(folder), number) for number, (folder, _) in enumerate(pairs))

    def __call__(self, folders: Iterable[str]) -> list[Owner]:
        """Returns the owners of folders that are one of these, lie in one or hold one: each once, in their order."""
        found = {number for folder in folders for number in self._numbers(stem_of(folder))}
        return list({id(self._owners[number]): self._owners[number] for number in sorted(found)}.values())

    def _numbers(self, stem: str) -> Iterator[int]:
        yield from self._from(stem, lambda each: each.startswith(stem))
        for around in stems_around(stem):
            yield from self._from(around, around.__eq__)

    def _from(self, stem: str, belongs: Callable[[str], bool]) -> Iterator[int]:
        for at in range(bisect_left(self._sorted, (stem, -1)), len(self._sorted)):
            each, number = self._sorted[at]
            if not belongs(each):
                return
            yield number
