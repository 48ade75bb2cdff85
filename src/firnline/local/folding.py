"""The local walk where units also take away: it is known which roots read each row, and rows fold into files at the
end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from firnline.local.rows import ROWS, Marks, each_once, marks_of, numbered, one_per_file
from firnline.model.files import FileKind, Root
from firnline.model.spans import Flags, SpanEntries, Spans, alive, merged, numbers
from firnline.ports.engines import root_columns, root_numbers
from firnline.ports.expanding import Expand, Expanded

_SAID = pa.schema([*(field for field in ROWS if field.name != "needed"), ("fold", pa.int64()), ("op", pa.int8())])

Open = Callable[[pa.Table, FileKind], Iterable[Expanded]]


class _Said(NamedTuple):
    """What units say of files, a row each, and the spans of the roots that read it, by the number of the row."""

    rows: pa.Table
    marks: Marks
    spans: Spans

    def where(self, wanted: Flags) -> _Said:
        """Returns the rows where `wanted` holds."""
        read = wanted[self.spans.owner]
        places = np.cumsum(wanted) - 1
        owner, start, end = (column[read] for column in self.spans)
        return _Said(self.rows.filter(pa.array(wanted)), self.marks[wanted], Spans(places[owner], start, end))


def walk_folding(roots: Sequence[Root], expand: Expand, open_all: Open) -> tuple[pa.Table, int]:
    """Returns one row per file that any root needs, and how many units were opened."""
    said, kept = _of_roots(roots)
    opened = 0
    for kind in expand.order:
        due = pc.and_(said.rows.column("opens"), pc.equal(said.rows.column("kind"), kind.value)).to_numpy()
        units, spans = _units(said.where(due))
        said = _joined([said.where(~due), *(_of_units(answer, spans) for answer in open_all(units, kind))])
        opened += len(units)
    return _settled(said, kept), opened


def _of_roots(roots: Sequence[Root]) -> tuple[_Said, int]:
    owners, kept = root_numbers(roots)
    columns = {**root_columns(roots), "fold": [0] * len(roots), "op": [1] * len(roots)}
    rows = pa.table({name: columns[name] for name in _SAID.names}, schema=_SAID)
    start = numbers([owners[root.owner] for root in roots])
    return _Said(rows, marks_of(rows.column("identity")), Spans(np.arange(len(roots)), start, start + 1)), kept


def _units(due: _Said) -> tuple[pa.Table, Spans]:
    """Returns each unit once, sorted by identity, and the spans of the roots that read it, by the unit's number."""
    needless = pa.repeat(pa.scalar(False), len(due.rows))
    units = one_per_file([due.rows.append_column("needed", needless).select(ROWS.names)]).sort_by("identity")
    named = due.rows.column("identity")
    places = pc.index_in(named, value_set=units.column("identity").combine_chunks()).to_numpy()
    return units, merged(places[due.spans.owner], due.spans.start, due.spans.end)


def _of_units(answer: Expanded, spans: Spans) -> _Said:
    """Returns the rows with the spans of their units."""
    rows = pa.Table.from_batches([answer.rows])
    rows = rows.append_column("expects", pa.nulls(len(rows), pa.int64())).select(_SAID.names).cast(_SAID)
    places, chosen = spans.of(answer.of)
    return _Said(rows, marks_of(rows.column("identity")), Spans(places, spans.start[chosen], spans.end[chosen]))


def _joined(parts: Sequence[_Said]) -> _Said:
    firsts = np.cumsum([0, *(len(part.rows) for part in parts[:-1])])
    owner = np.concatenate([part.spans.owner + first for part, first in zip(parts, firsts, strict=True)])
    start, end = (np.concatenate([part.spans[which] for part in parts]) for which in (1, 2))
    marks = np.concatenate([part.marks for part in parts])
    return _Said(pa.concat_tables([part.rows for part in parts]), marks, Spans(owner, start, end))


def _settled(said: _Said, kept: int) -> pa.Table:
    """Returns one row per file that is alive in any root, needed where it is in a kept one."""
    files, count = numbered(said.rows.column("identity"), said.marks)
    owner, start, end = said.spans
    fold, op = (numbers(said.rows.column(name).to_numpy())[owner] for name in ("fold", "op"))
    found = alive(count, SpanEntries(files[owner], fold, op, start, end), kept)
    reached = found.reached[files]
    judged = said.rows.append_column("needed", pa.array(found.needed[files])).select(ROWS.names)
    if reached.all():
        return each_once(judged, files)
    return each_once(judged.filter(pa.array(reached)), files[reached])
