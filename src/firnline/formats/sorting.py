"""Sorting listed objects that nothing names: by their place, their name and their age. In this order, first match:

firnline's own records, another table's folder, outside every folder that the table writes to, a name that no writer
of the format gives, no age, too young; and only what is left is a victim.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from firnline.formats.columns import identities
from firnline.model.files import FileKind
from firnline.model.locations import bare_path, known_as, stem_of, stems_around
from firnline.ports.listings import LISTED_COLUMNS, SORTED_COLUMNS, ObjectClass, WrittenFolder

_STEM = r"^[^:]+://[^/]*"
_LAST = r"(?s)^.*/"
_NAME = r"(?s)[^/]*\z"
_FEW = 8
"""So many folders are quicker tried one by one."""
Patterns = tuple[tuple[str, FileKind], ...]
"""Expressions for whole identities."""


@dataclass(frozen=True, slots=True)
class Sorting:
    """How objects are told apart that no root reaches. Holds no connection, so it travels to executors.

    `cutoff_ms`: what the store says is younger stays. `documents` are names of metadata that any table might have:
    they get their kind wherever they lie, so that a table which nobody knows is noticed. `same` are pairs of stems
    (scheme and authority) that the operator says are one: a listed `s3://new/…` is compared as `s3://old/…`. In the
    folders `by_name` no writer gives a name twice: there the name alone is what near misses have in common. `real`
    makes of a path the one that its links and mounts lead to: names that are equal by that are near misses too.
    """

    cutoff_ms: int
    places: tuple[WrittenFolder, ...]
    documents: tuple[tuple[str, FileKind], ...] = ()
    others: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    same: tuple[tuple[str, str], ...] = ()
    by_name: tuple[str, ...] = ()
    real: Callable[[pa.Array], pa.Array] | None = None

    def __call__(self, listed: pa.RecordBatch) -> pa.RecordBatch:
        called = self.identities(listed.column("key"))
        names = self.names(called)
        real = self._really(names)
        there = self._really(called) if self.same else real
        kinds, inside = self._kinds(names)
        columns = [listed.column(name) for name in LISTED_COLUMNS]
        if there is not called:  # links, and what lies on another mount: they lead to other files
            inside = pc.and_(inside, pc.equal(there, called))
        classes = self._classes(listed, names, kinds, inside)
        columns += [names, self._paths(names, real), classes, _named(names, _anywhere(self.documents), kinds)]
        return pa.record_batch(columns, names=list(SORTED_COLUMNS))

    def identities(self, keys: pa.Array) -> pa.Array:
        return identities(keys)

    def names(self, identities: pa.Array) -> pa.Array:
        for one, other in self.same:
            stem, meant = stem_of(one), stem_of(other)
            moved = pc.binary_replace_slice(identities, 0, len(stem.encode()), meant)
            identities = pc.if_else(pc.starts_with(identities, stem), moved, identities)
        return identities

    def paths(self, identities: pa.Array) -> pa.Array:
        return self._paths(identities, self._really(identities))

    def _really(self, identities: pa.Array) -> pa.Array:
        return identities if self.real is None else self.real(identities)

    def _paths(self, identities: pa.Array, real: pa.Array) -> pa.Array:
        paths = plain_paths(real)
        if not self.by_name:
            return paths
        alone = pc.replace_substring_regex(identities, _LAST, "")
        return pc.if_else(self._under_any(identities, self.by_name), alone, paths)

    def _classes(self, listed: pa.RecordBatch, names: pa.Array, kinds: pa.Array, inside: pa.Array) -> pa.Array:
        modified = listed.column("modified_ms")
        aged = pc.fill_null(pc.greater(modified, 0), False)
        tests = {
            ObjectClass.OWN_RECORDS: self._under_any(names, self.own),
            ObjectClass.ANOTHER_TABLE: self._under_any(names, self.others),
            ObjectClass.OUTSIDE: pc.invert(inside),
            ObjectClass.UNKNOWN_KIND: pc.is_null(kinds),
            ObjectClass.UNKNOWN_AGE: pc.invert(aged),
            # Exactly at the cut-off still counts as young: of two readings of a boundary the one that keeps.
            ObjectClass.YOUNG: pc.fill_null(pc.greater_equal(modified, self._cutoffs(names)), True),
        }
        conditions = pa.StructArray.from_arrays(list(tests.values()), names=[each.value for each in tests])
        answers = [pa.scalar(each.value) for each in (*tests, ObjectClass.VICTIM)]
        return pc.case_when(conditions, *answers)

    def _cutoffs(self, names: pa.Array) -> pa.Scalar | pa.Array:
        """Returns what each object must be older than; one for all where no folder has its own."""
        found: pa.Scalar | pa.Array = pa.scalar(self.cutoff_ms)
        for place in self.places:
            if place.cutoff_ms is not None and place.cutoff_ms < self.cutoff_ms:
                here = _under(names, known_as(place.folder, self.same).rstrip("/"))
                found = pc.if_else(here, place.cutoff_ms, found)
        return found

    def _kinds(self, names: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Returns the kind that each name has in its place, null where no writer would name it so; and whether it is in
        any writer's folder.

        The innermost place decides alone: a table inside another one's folder knows its own files best.
        """
        kinds, inside = pa.nulls(len(names), pa.string()), pa.repeat(pa.scalar(False), len(names))
        decided = inside
        for folder, expressions in self._innermost_first():
            here = pc.and_not(_under(names, folder), decided)
            if not pc.any(here).as_py():
                continue  # a prefix has thousands of places, and a batch has objects of a few
            shown = pc.and_not(here, _hidden_below(names, folder))
            kinds = pc.if_else(shown, _named(names, expressions, kinds), kinds)
            inside = pc.or_(inside, here) if expressions else inside
            decided = pc.or_(decided, here)
        return kinds, inside

    def _innermost_first(self) -> list[tuple[str, Patterns]]:
        """Returns each folder once, with all names that any table's writers give there."""
        merged: dict[str, Patterns] = {}
        for place in self.places:
            folder = known_as(place.folder, self.same).rstrip("/")
            merged[folder] = (*merged.get(folder, ()), *_patterns(place, folder))
        return sorted(merged.items(), key=lambda each: -len(each[0]))

    def _under_any(self, names: pa.Array, folders: tuple[str, ...]) -> pa.Array:
        stems = _stems(folders, self.same)
        if len(stems) > _FEW:
            return _in_any(names, stems)
        found = pa.repeat(pa.scalar(False), len(names))
        for stem in stems:
            found = pc.or_(found, pc.starts_with(names, stem))
        return found


@lru_cache(maxsize=16)
def _stems(folders: tuple[str, ...], same: tuple[tuple[str, str], ...]) -> frozenset[str]:
    """Returns what begins the names of all that lies in the folders. The sorts of all tables of a lake have some
    folders in common: those of each table.
    """
    return frozenset(stem_of(known_as(folder, same)) for folder in folders)


def _in_any(names: pa.Array, stems: frozenset[str]) -> pa.Array:
    """Tells which names begin with any of many stems: each folder of theirs is looked up, and not each stem tried."""
    folders = pc.replace_substring_regex(names, _NAME, "").dictionary_encode()
    is_inside = [any(stem in stems for stem in stems_around(each)) for each in folders.dictionary.to_pylist()]
    return pa.array(is_inside, pa.bool_()).take(folders.indices)


def _patterns(place: WrittenFolder, folder: str) -> Patterns:
    if not place.whole:
        return _anywhere(place.names)
    return tuple((f"^{re.escape(stem_of(folder))}(?:{expression})$", kind) for expression, kind in place.names)


def _anywhere(names: Patterns) -> Patterns:
    return tuple((f"/(?:{expression})$", kind) for expression, kind in names)


def _named(names: pa.Array, patterns: Patterns, kinds: pa.Array) -> pa.Array:
    """Returns the kinds, and where one is null that of the first pattern that the name fits."""
    for pattern, kind in patterns:
        fits = pc.and_(pc.is_null(kinds), pc.match_substring_regex(names, pattern))
        kinds = pc.if_else(fits, kind.value, kinds)
    return kinds


def plain_paths(names: pa.Array) -> pa.Array:
    """Returns the `bare_path` of each identity: what near misses have in common."""
    paths = pc.replace_substring_regex(names, _STEM, "")
    if not pc.any(pc.match_substring_regex(paths, r"[^\x00-\x7F]|%")).as_py():
        return paths
    return pa.array([bare_path(path) for path in names.to_pylist()], pa.string())


def _under(names: pa.Array, folder: str) -> pa.Array:
    return pc.starts_with(names, stem_of(folder))


def _hidden_below(names: pa.Array, folder: str) -> pa.Array:
    """Tells which objects lie in a hidden folder below this one, such as `_temporary`: some job's own affair.

    A partition's folder has a name with `=` in it and is none, whatever its column is called.
    """
    below = pc.utf8_slice_codeunits(names, len(stem_of(folder)) - 1)
    return pc.match_substring_regex(below, r"/[._][^/=]*/")
