"""The census of several tables in this process: one walk marks what was listed, and each table has its part of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from firnline.errors import FirnlineError
from firnline.local.census import LocalCensus, counted, named, sorted_objects, units_of
from firnline.local.rows import ROWS, one_per_file
from firnline.local.walk import Files
from firnline.model.files import FileKind
from firnline.model.spans import Flags, Numbers, numbers
from firnline.ports.engines import TableSearch
from firnline.ports.expanding import Expanded
from firnline.ports.listings import Sort
from firnline.walking.arrow import column_of
from firnline.walking.dealing import Dealer, Walks
from firnline.walking.marks import Marks, marks_of


@dataclass(frozen=True, slots=True)
class ListedNames:
    """What was listed, by what it is compared with."""

    identities: pa.ChunkedArray
    names: pa.ChunkedArray
    paths: pa.ChunkedArray

    @staticmethod
    def of(listed: pa.Table, sort: Sort) -> ListedNames:
        chunks = [sort.identities(chunk) for chunk in listed.column("key").chunks]
        names = [sort.names(chunk) for chunk in chunks]
        paths = [sort.paths(chunk) for chunk in names]
        return ListedNames(*(pa.chunked_array(each, pa.string()) for each in (chunks, names, paths)))


class Matching:
    """Keeps of what units name the units, and what may be in the listing or near to it: memory is as large as the
    listing, however many files the lake has. By marks: a few more than that stay, and none less.
    """

    def __init__(self, listed: ListedNames, sort: Sort, kinds: Collection[FileKind]) -> None:
        self._names, self._paths = (np.sort(marks_of(each)) for each in (listed.names, listed.paths))
        self._sort = sort
        self._kinds = pa.array([kind.value for kind in kinds], pa.string())

    def __call__(self, answer: Expanded) -> Expanded:
        rows = answer.rows
        names = self._sort.names(rows.column("identity"))
        is_unit = pc.or_(rows.column("opens"), pc.is_in(rows.column("kind"), value_set=self._kinds))
        stays = is_unit.to_numpy(zero_copy_only=False) | _among(self._names, names)
        stays |= _among(self._paths, self._sort.paths(names))
        return Expanded(rows.filter(column_of(stays)), answer.of[stays])


def _among(marks: Marks, texts: pa.Array) -> Flags:
    return _are_in(marks, marks_of(pa.chunked_array([texts])))


def _are_in(
    ordered: np.ndarray[tuple[int], np.dtype[np.generic]], values: np.ndarray[tuple[int], np.dtype[np.generic]]
) -> Flags:
    """Tells which values are among those, which are in order."""
    if not len(ordered):
        return np.zeros(len(values), dtype=bool)
    places = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    found: Flags = ordered[places] == values
    return found


class Met:
    """Which of some texts are among those that walks reach, and by which walks."""

    def __init__(self, texts: pa.ChunkedArray, reached: pa.ChunkedArray, of_walk: Numbers, common: Flags) -> None:
        known = pc.unique(reached)
        met = _index(reached, known)
        self._walks = len(common)
        self._pairs = np.unique(met * self._walks + of_walk)
        self._at = _index(texts, known)
        by_all = np.zeros(len(known) + 1, dtype=bool)  # one more at the end: what is not met at all is at -1
        by_all[met[common[of_walk]]] = True
        self._by_all = by_all[self._at]

    def by_any(self, places: Numbers, walks: Sequence[int]) -> Flags:
        """Tells of the texts at these places whether one of the walks reaches them."""
        at, found = self._at[places], np.zeros(len(places), dtype=bool)
        for walk in walks:
            found |= _are_in(self._pairs, at * self._walks + walk)
        return found & (at >= 0)

    def by_all_or(self, places: Numbers, private: Sequence[int]) -> Flags:
        """Tells whether a walk that counts for all reaches them, or one of these."""
        return self._by_all[places] | self.by_any(places, private)


class Marked:
    """The listing, told of each object who reaches it, and who reaches anything that has its path."""

    def __init__(self, listed: pa.Table, names: ListedNames, files: Sequence[Files], asked: Walks, sort: Sort) -> None:
        own = [each.reached.where(each.reached.reach > 0) for each in files]
        parts = zip(files, own, strict=True)
        rows = pa.concat_tables([each.rows.take(column_of(reached.rows)) for each, reached in parts])
        of_walk = np.concatenate([each.walks for each in own])
        needless = pa.repeat(pa.scalar(False), len(rows))
        self._reached = named(rows.append_column("needed", needless).select(ROWS.names), sort)
        self._of_walk = of_walk
        self._listed = (
            listed.combine_chunks()
        )  # taken from hundreds of pieces, each part would look through all of them
        self._asked = asked
        self._names = Met(names.names, self._reached.column("identity"), of_walk, asked.common)
        self._paths = Met(names.paths, self._reached.column("path"), of_walk, asked.common)
        self._units = self._units_of(np.flatnonzero(asked.common))

    def census(self, search: int, places: Numbers, sort: Sort) -> LocalCensus:
        """Returns the census of the objects at these places, which are those of a search. Raises StoreError where two
        of them are one object.
        """
        objects = sorted_objects(self._listed.take(column_of(places)), sort)
        private = self._asked.private[search]
        needed = self._names.by_any(places, self._asked.needed[search])
        same, near = (met.by_all_or(places, private) for met in (self._names, self._paths))
        told = [column_of(each) for each in (needed, same, near)]
        counts = numbers([*np.flatnonzero(self._asked.common), *private]) if near.any() else numbers([])
        return counted(objects, told, self._reached_by(counts), self._units_for(private))

    def _units_for(self, private: Sequence[int]) -> pa.Table:
        """Returns the units that count for a search: a purge takes what stands here for opened, and what it says for
        counted.
        """
        if not private:
            return self._units
        own = self._units_of(numbers(private))
        known = pc.is_in(own.column("identity"), value_set=self._units.column("identity").combine_chunks())
        return pa.concat_tables([self._units, own.filter(pc.invert(known))])

    def _units_of(self, walks: Numbers) -> pa.Table:
        """Returns the units that walks reach, each once."""
        units = units_of(self._reached_by(walks), self._asked.kinds)
        return one_per_file([units.select(ROWS.names)])

    def _reached_by(self, walks: Numbers) -> pa.Table:
        if len(walks) == len(self._asked.walks):
            return self._reached
        return self._reached.filter(column_of(np.isin(self._of_walk, walks)))


def _index(texts: pa.ChunkedArray, among: pa.Array) -> Numbers:
    """Returns the place of each text among those; -1 where it is none of them."""
    return numbers(pc.fill_null(pc.index_in(texts, value_set=among), -1).to_numpy())


def take_each(
    marked: Marked, names: ListedNames, searches: Sequence[TableSearch]
) -> Iterator[LocalCensus | FirnlineError]:
    """Yields the census of each search, or why there is none."""
    places, dealt = Dealer(searches)(names.identities.combine_chunks())
    for number, search in enumerate(searches):
        first, end = np.searchsorted(dealt, [number, number + 1]).tolist()
        try:
            yield marked.census(number, places[first:end], search.sort)
        except FirnlineError as problem:
            yield problem
