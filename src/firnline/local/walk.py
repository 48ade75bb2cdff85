"""The local walk of several tables: it is known which roots read each row, and rows fold into files at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from firnline.errors import FirnlineError
from firnline.local.rows import ROWS, each_once, numbered, one_per_file
from firnline.model.files import FileKind
from firnline.model.spans import Flags, Numbers, Spans, merged, numbers
from firnline.ports.expanding import Expanded, with_expectations
from firnline.walking.arrow import column_of
from firnline.walking.marks import Marks, marks_of
from firnline.walking.opening import Losses, Open, come_too_late, opened_once

if TYPE_CHECKING:
    from firnline.walking.axis import Pass, Reached

_SAID = pa.schema([*(each for each in ROWS if each.name != "needed"), ("fold", pa.int64()), ("op", pa.int8())])

OpenKind = Callable[[pa.Table, FileKind], Open]
"""Returns what opens units of a kind."""


class Said(NamedTuple):
    """What units say of files, a row each, and the spans of the roots that read it, by the number of the row."""

    rows: pa.Table
    marks: Marks
    spans: Spans

    def where(self, wanted: Flags) -> Said:
        """Returns the rows where `wanted` holds."""
        read = wanted[self.spans.owner]
        places = np.cumsum(wanted) - 1
        owner, start, end = (column[read] for column in self.spans)
        return Said(self.rows.filter(column_of(wanted)), self.marks[wanted], Spans(places[owner], start, end))


@dataclass(frozen=True, slots=True)
class PassFound:
    """What the walks of one pass found: all that was said, how many units each of them read, and which cannot be
    judged.
    """

    said: Said
    opened: Numbers
    problems: dict[int, FirnlineError]


def walk_together(begun: Pass, open_kind: OpenKind) -> PassFound:
    """Returns what the units of a pass say, each opened once; one that cannot be read ends the walks that reach it."""
    means = begun.means
    rows = _added(begun.starts).select(_SAID.names)
    said = Said(rows, marks_of(rows.column("identity")), begun.spans)
    opened, losses = np.zeros(len(means.axis), dtype=np.int64), Losses()
    for kind in means.order:
        due = pc.and_(said.rows.column("opens"), pc.equal(said.rows.column("kind"), kind.value)).to_numpy()
        units, spans = _units(said.where(due))
        parts, read = [said.where(~due)], _Opened(len(units))
        for answer, by in opened_once(means, spans, len(units), open_kind(units, kind), losses):
            parts.append(_of_units(answer, by))
            read.note(answer, by)
        said = _joined(parts)
        opened += sum((_by_walk(begun, each) for each in read.spans()), np.zeros_like(opened))
    late = dict.fromkeys(_left_over(begun, said), come_too_late())
    return PassFound(said, opened, {**late, **{walk: why for walk, (_, why) in losses.by_walk.items()}})


class _Opened:
    """Which units were there, and whose they were: one that is gone, where it may be, was not opened."""

    def __init__(self, units: int) -> None:
        self._units = units
        self._rounds: list[tuple[Spans, Flags]] = []

    def note(self, answer: Expanded, by: Spans) -> None:
        """Notes what told of itself. `by` is the same for all answers of one round."""
        if not self._rounds or self._rounds[-1][0] is not by:
            self._rounds.append((by, np.zeros(self._units, dtype=bool)))
        self._rounds[-1][1][answer.of] = True

    def spans(self) -> Iterator[Spans]:
        for by, is_there in self._rounds:
            found = is_there[by.owner]
            yield Spans(by.owner[found], by.start[found], by.end[found])


def _left_over(begun: Pass, said: Said) -> list[int]:
    """Returns the walks that have units which no round opened."""
    unopened = said.rows.column("opens").to_numpy()[said.spans.owner]
    found: list[int] = np.unique(begun.means.axis.walks(said.spans.start[unopened])).tolist()
    return found


def _added(rows: pa.Table) -> pa.Table:
    """Returns rows of which none takes anything away."""
    fold, op = column_of(np.zeros(len(rows), np.int64)), column_of(np.ones(len(rows), np.int8))
    return rows.append_column("fold", fold).append_column("op", op)


def _by_walk(begun: Pass, spans: Spans) -> Numbers:
    """Returns how many units each walk reads for itself."""
    from firnline.walking.axis import BY_OWN

    axis = begun.means.axis
    walks = axis.walks(spans.start)
    own = (axis.reach(walks, spans.start, spans.end) & BY_OWN) > 0
    pairs = np.unique(walks[own] * (spans.owner.max(initial=0) + 1) + spans.owner[own])
    return np.bincount(pairs // (spans.owner.max(initial=0) + 1), minlength=len(axis)).astype(np.int64)


def _units(due: Said) -> tuple[pa.Table, Spans]:
    """Returns each unit once, sorted by identity, and the spans of the roots that read it, by the unit's number."""
    needless = pa.repeat(pa.scalar(False), len(due.rows))
    units = one_per_file([due.rows.append_column("needed", needless).select(ROWS.names)]).sort_by("identity")
    named = due.rows.column("identity")
    places = pc.index_in(named, value_set=units.column("identity").combine_chunks()).to_numpy()
    return units, merged(places[due.spans.owner], due.spans.start, due.spans.end)


def _of_units(answer: Expanded, spans: Spans) -> Said:
    """Returns the rows with the spans of their units."""
    rows = pa.Table.from_batches([with_expectations(answer.rows)])
    rows = (rows if "op" in rows.column_names else _added(rows)).select(_SAID.names).cast(_SAID)
    places, of_unit = spans.of(answer.of)
    return Said(rows, marks_of(rows.column("identity")), Spans(places, spans.start[of_unit], spans.end[of_unit]))


def _joined(parts: Sequence[Said]) -> Said:
    firsts = np.cumsum([0, *(len(part.rows) for part in parts[:-1])])
    owner = np.concatenate([part.spans.owner + first for part, first in zip(parts, firsts, strict=True)])
    start, end = (np.concatenate([part.spans[which] for part in parts]) for which in (1, 2))
    marks = np.concatenate([part.marks for part in parts])
    return Said(pa.concat_tables([part.rows for part in parts]), marks, Spans(owner, start, end))


@dataclass(frozen=True, slots=True)
class Files:
    """The files that the walks of a pass reach, by walk."""

    rows: pa.Table
    reached: Reached

    def of(self, walk: int) -> tuple[pa.Table, pa.Table]:
        """Returns one row per file that a walk reaches, needed if a kept owner does; and what others need of files."""
        from firnline.walking.axis import BY_KEPT, BY_OTHERS, BY_OWN

        found = self.reached.of(walk)
        own = (found.reach & BY_OWN) > 0
        rows = self._at(found.rows[own])
        needed = column_of((found.reach[own] & BY_KEPT) > 0)
        files = each_once(rows.append_column("needed", needed).select(ROWS.names), found.files[own])
        theirs = self.rows.select(["identity"]).take(column_of(found.rows[(found.reach & BY_OTHERS) > 0]))
        return files, theirs

    def _at(self, places: Numbers) -> pa.Table:
        """Returns the rows at these places: all of them as they are, where one table has no others beside it."""
        return self.rows if len(places) == len(self.rows) else self.rows.take(column_of(places))


def files_of(begun: Pass, said: Said) -> Files:
    """Returns the files that any walk reaches."""
    from firnline.walking.axis import who_reaches

    files, _ = numbered(said.rows.column("identity"), said.marks)
    fold, op = (numbers(said.rows.column(name).to_numpy()) for name in ("fold", "op"))
    found = who_reaches(begun.means.axis, files, said.spans, (fold, op) if begun.means.folds else None)
    tells = op[found.rows] > 0
    # To take rows out of one piece costs a tenth of taking them out of the hundreds that they came in.
    rows = said.rows if len(begun.means.axis) == 1 else said.rows.combine_chunks()
    return Files(rows, found.where(tells))
