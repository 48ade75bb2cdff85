"""The local walk where units also take away: rows carry which roots read them, and fold into files at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from firnline.local.rows import ROWS, each_once, numbered, one_per_file, split
from firnline.model.files import FileKind, Root
from firnline.model.spans import SpanEntries, Spans, alive, merged
from firnline.ports.engines import root_columns, root_numbers
from firnline.ports.expanding import Expand, Expanded

_FACTS = [field for field in ROWS if field.name != "needed"]
_SPANNED = pa.schema([*_FACTS, ("fold", pa.int64()), ("op", pa.int8()), ("start", pa.int64()), ("end", pa.int64())])
"""One row for what a unit says of a file and one span of roots that read it."""

Open = Callable[[pa.Table, FileKind], Iterable[Expanded]]


def walk_folding(roots: Sequence[Root], expand: Expand, open_all: Open) -> tuple[pa.Table, int]:
    """Returns one row per file that any root needs, and how many units were opened."""
    rows, kept = _root_rows(roots)
    opened = 0
    for kind in expand.order:
        due, rest = split(rows, pc.and_(rows.column("opens"), pc.equal(rows.column("kind"), kind.value)))
        units, spans = _units(due)
        rows = pa.concat_tables([rest, *(_spanned(answer, spans) for answer in open_all(units, kind))])
        opened += len(units)
    return _settled(rows, kept), opened


def _root_rows(roots: Sequence[Root]) -> tuple[pa.Table, int]:
    numbers, kept = root_numbers(roots)
    columns = root_columns(roots)
    start = [numbers[root.owner] for root in roots]
    own = {"fold": [0] * len(roots), "op": [1] * len(roots), "start": start, "end": [number + 1 for number in start]}
    return pa.table({name: {**columns, **own}[name] for name in _SPANNED.names}, schema=_SPANNED), kept


def _units(due: pa.Table) -> tuple[pa.Table, Spans]:
    """Returns each unit once, sorted by identity, and the spans of the roots that read it, by the unit's number."""
    needless = pa.repeat(pa.scalar(False), len(due))
    units = one_per_file([due.append_column("needed", needless).select(ROWS.names)]).sort_by("identity")
    numbers = pc.index_in(due.column("identity"), value_set=units.column("identity").combine_chunks())
    return units, merged(numbers.to_numpy(), due.column("start").to_numpy(), due.column("end").to_numpy())


def _spanned(answer: Expanded, spans: Spans) -> pa.Table:
    """Returns the rows, once for each span of its unit."""
    rows, chosen = spans.of(answer.of)
    table = pa.Table.from_batches([answer.rows.take(pa.array(rows))])
    table = table.append_column("expects", pa.nulls(len(rows), pa.int64()))
    table = table.append_column("start", pa.array(spans.start[chosen]))
    table = table.append_column("end", pa.array(spans.end[chosen]))
    return table.select(_SPANNED.names).cast(_SPANNED)


def _settled(rows: pa.Table, kept: int) -> pa.Table:
    """Returns one row per file that is alive in any root, needed where it is in a kept one."""
    names, files = numbered(rows.column("identity"))
    spans = (rows.column(name).to_numpy().astype(np.int64) for name in ("fold", "op", "start", "end"))
    found = alive(len(names), SpanEntries(files, *spans), kept)
    reached = found.reached[files]
    judged = rows.append_column("needed", pa.array(found.needed[files])).select(ROWS.names)
    return each_once(judged.filter(pa.array(reached)), names, files[reached])
