"""Several tables walked at once: the owners of all their roots lie on one axis of numbers.

Each table has a stretch of it: the owners that are kept, then those that are released, then what other tables need. The
last number of a stretch belongs to nothing, so that spans of two tables never touch: a span is of one table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from firnline.model.files import FileKind, Root
from firnline.model.spans import Flags, Numbers, SpanEntries, Spans, above_zero, merged, numbers
from firnline.ports.engines import ServerRoots, TableWalk, root_columns, root_numbers
from firnline.ports.expanding import Expand, one_order
from firnline.ports.stores import shared

Reach = np.ndarray[tuple[int], np.dtype[np.uint8]]
"""By whom files are reached."""

BY_KEPT, BY_RELEASED, BY_OTHERS = 1, 2, 4
"""By whom a file is reached in a walk; the sum of them where it is by several."""
BY_OWN = BY_KEPT | BY_RELEASED

STARTS = pa.schema(
    [
        ("identity", pa.string()),
        ("key", pa.string()),
        ("size", pa.int64()),
        ("kind", pa.string()),
        ("opens", pa.bool_()),
        ("expects", pa.int64()),
    ]
)
_ONCE = {"key": "min", "size": "max", "kind": "min", "opens": "max", "expects": "max"}


@dataclass(frozen=True, slots=True)
class Axis:
    """Where in each walk's stretch the kept owners, the released ones and what others need begin."""

    kept: Numbers
    released: Numbers
    elsewhere: Numbers

    def __len__(self) -> int:
        return len(self.kept)

    def walks(self, starts: Numbers) -> Numbers:
        """Returns the walk that each span is of, by where it starts."""
        return np.searchsorted(self.kept, starts, side="right") - 1

    def reach(self, walks: Numbers, starts: Numbers, ends: Numbers) -> Reach:
        """Returns by whom the roots of each span are owned."""
        released, elsewhere = self.released[walks], self.elsewhere[walks]
        found = (starts < released) * BY_KEPT
        found |= ((ends > released) & (starts < elsewhere)) * BY_RELEASED
        found |= (ends > elsewhere) * BY_OTHERS
        return found.astype(np.uint8)


class Stretch(NamedTuple):
    """The numbers of a walk's roots, counted from where its stretch begins."""

    own: list[int]
    others: list[list[int]]
    released: int
    elsewhere: int
    end: int


def _stretch(walk: TableWalk) -> Stretch:
    own, released, elsewhere = _numbered(walk.roots, walk.expand.folds)
    others: list[list[int]] = []
    end = elsewhere
    for each in walk.elsewhere:
        theirs, _, count = _numbered(each.roots, each.expand.folds)
        others.append([end + number for number in theirs])
        end += count
    return Stretch(own, others, released, elsewhere, end)


def _numbered(roots: Sequence[Root], folds: bool) -> tuple[list[int], int, int]:
    """Returns the number of each root's owner, those of kept ones first; how many these are, and how many all are.

    Where nothing is taken away it does not matter which owner needs a file: there are two, kept and released.
    """
    if not folds:
        return [0 if root.needed else 1 for root in roots], 1, 2
    owners, kept = root_numbers(roots)
    return [owners[root.owner] for root in roots], kept, len(owners)


@dataclass(frozen=True, slots=True)
class WalkMeans:
    """How the units of several walks are opened. All of them fold, or none does.

    `by` is the expand of each walk's own units, and of those of others: two numbers for each walk.
    """

    axis: Axis
    expands: tuple[Expand, ...]
    by: Numbers
    folds: bool

    @property
    def order(self) -> tuple[FileKind, ...]:
        return one_order({each.order for each in self.expands})

    def share(self, parts: int) -> WalkMeans:
        return replace(self, expands=tuple(shared(each, parts) for each in self.expands))

    def openers(self, starts: Numbers) -> Numbers:
        """Returns which expand opens a unit for each of its spans, by where that starts."""
        walks = self.axis.walks(starts)
        return self.by[2 * walks + (starts >= self.axis.elsewhere[walks])]


@dataclass(frozen=True, slots=True)
class Pass:
    """Where walks of several tables start: one row for each object that any root names, in the order of the roots, and
    the spans of owners by the number of the row.
    """

    starts: pa.Table
    spans: Spans
    means: WalkMeans


def passes_of(walks: Sequence[TableWalk]) -> list[Pass]:
    """Returns the passes that the walks take: for each server one over units that fold, and one over those that do not;
    none that is empty.

    1. Two catalogs have servers of their own, and one was copied to the other: buckets and objects are called alike.
    2. On one of them a table goes on by itself: its schema, its lists and what is gone differ.
    3. Opened there for both, a unit would say of the other table what is not so.
    """
    stretches = [_stretch(walk) for walk in walks]
    firsts = np.cumsum([0, *(each.end + 1 for each in stretches[:-1])])
    axis = Axis(
        firsts,
        firsts + numbers([each.released for each in stretches]),
        firsts + numbers([each.elsewhere for each in stretches]),
    )
    servers = dict.fromkeys(each for walk in walks for each in (walk.server, *_servers(walk)))
    found = (_pass(walks, stretches, axis, (server, folds)) for server in servers for folds in (False, True))
    return [each for each in found if each is not None]


def _pass(
    walks: Sequence[TableWalk], stretches: Sequence[Stretch], axis: Axis, wanted: tuple[str, bool]
) -> Pass | None:
    """Returns the pass over the units of one server that fold, or of those that do not; None if there are none."""
    expands: list[Expand] = []
    by: list[int] = []
    roots: list[Sequence[Root]] = []
    places: list[Numbers] = []
    for first, walk, stretch in zip(axis.kept, walks, stretches, strict=True):
        own = (ServerRoots(walk.roots, walk.expand, walk.server), stretch.own)
        for parts in ([own], zip(walk.elsewhere, stretch.others, strict=True)):
            # Of several parts of others one is wanted at most: their servers differ.
            part = next((each for each in parts if (each[0].server, each[0].expand.folds) == wanted), None)
            by.append(-1 if part is None else _place(expands, part[0].expand))
            if part is not None:
                roots.append(part[0].roots)
                places.append(first + numbers(part[1]))
    if not expands:
        return None
    starts, spans = _once(list(chain.from_iterable(roots)), np.concatenate(places))
    return Pass(starts, spans, WalkMeans(axis, tuple(expands), numbers(by), wanted[1]))


def _place(expands: list[Expand], expand: Expand) -> int:
    """Returns the place of an expand among those, where it is put unless it is the last one: tables next to each other
    may well be opened by the same.
    """
    if not expands or expands[-1] is not expand:
        expands.append(expand)
    return len(expands) - 1


def _servers(walk: TableWalk) -> tuple[str, ...]:
    """Returns the servers of what others need. Raises ValueError where two parts of it are on one: a unit of either has
    one way to be opened.
    """
    servers = tuple(each.server for each in walk.elsewhere)
    if len(set(servers)) < len(servers):
        raise ValueError("what others need comes in one part for each server")
    return servers


def _once(roots: Sequence[Root], owners: Numbers) -> tuple[pa.Table, Spans]:
    """Returns each object once, as one kind of unit by whichever name: the first by the alphabet.

    So a list that readers of changes can do without, and a snapshot cannot, is opened as one that must be there.
    """
    columns = root_columns(roots)
    rows = pa.table({name: columns[name] for name in STARTS.names}, schema=STARTS)
    names = rows.column("identity").combine_chunks().dictionary_encode()
    object_of = names.indices.cast(pa.int64())
    grouped = rows.append_column("object", object_of).group_by("object").aggregate(list(_ONCE.items()))
    placed = grouped.sort_by("object")
    found = {"identity": names.dictionary, **{name: placed.column(f"{name}_{how}") for name, how in _ONCE.items()}}
    starts = pa.table({name: found[name] for name in STARTS.names}, schema=STARTS)
    return starts, merged(object_of.to_numpy(zero_copy_only=False), owners, owners + 1)


class Reached(NamedTuple):
    """Which rows tell of a file that a walk reaches: a pair for each walk, sorted by it. `files` counts from zero in
    each walk, `reach` says by whom the file is reached there.
    """

    rows: Numbers
    walks: Numbers
    files: Numbers
    reach: Reach

    def of(self, walk: int) -> Reached:
        first, end = np.searchsorted(self.walks, [walk, walk + 1]).tolist()
        return self._at(slice(first, end))

    def where(self, wanted: Flags) -> Reached:
        return self._at(wanted)

    def _at(self, places: slice | Flags) -> Reached:
        return Reached(self.rows[places], self.walks[places], self.files[places], self.reach[places])


def who_reaches(axis: Axis, files: Numbers, spans: Spans, folded: tuple[Numbers, Numbers] | None) -> Reached:
    """Returns who reaches what. `files` numbers the file of each row, `spans` are those of the rows; `folded` is what
    each row folds by, and whether it adds: None where nothing is taken away.
    """
    walks = axis.walks(spans.start)
    pairs, of_span = np.unique(walks * (files.max(initial=0) + 1) + files[spans.owner], return_inverse=True)
    of_pair = pairs // (files.max(initial=0) + 1)
    if folded is None:
        alive = Spans(of_span, spans.start, spans.end)
    else:
        fold, op = (column[spans.owner] for column in folded)
        alive = above_zero(len(pairs), SpanEntries(of_span, fold, op, spans.start, spans.end))
    reach = np.zeros(len(pairs), dtype=np.uint8)
    np.bitwise_or.at(reach, alive.owner, axis.reach(of_pair[alive.owner], alive.start, alive.end))
    return _by_walk(spans.owner, of_span, of_pair, reach)


def _by_walk(rows: Numbers, pairs: Numbers, of_pair: Numbers, reach: Reach) -> Reached:
    """Returns each row once for each walk; the spans of a row stand in order, so those of one walk stand together."""
    begins = np.ones(len(rows), dtype=bool)
    begins[1:] = (rows[1:] != rows[:-1]) | (pairs[1:] != pairs[:-1])
    rows, pairs = rows[begins], pairs[begins]
    order = np.argsort(of_pair[pairs], kind="stable")
    rows, pairs = rows[order], pairs[order]
    walks = of_pair[pairs]
    return Reached(rows, walks, pairs - np.searchsorted(of_pair, walks), reach[pairs])
