"""Several runs as one table, which a narrow terminal shows in fewer and shorter columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from firnline.journal.events import RunState
from firnline.model.files import Tally
from firnline.model.names import is_location
from firnline.model.times import due_minute
from firnline.ops.runs.status import RunStatus, grace_end
from firnline.plans.pages import Grid, Tone, number, size

_TONES = {
    RunState.COMMITTED: Tone.GOES,
    RunState.PURGING: Tone.GOES,
    RunState.UNDONE: Tone.KEPT,
    RunState.CANCELLED: Tone.KEPT,
}
_YEAR = len("2026-")


@dataclass(frozen=True, slots=True)
class _Column:
    heading: str
    cells: tuple[str, ...]
    right: bool = False


def runs_grid(runs: Sequence[RunStatus]) -> Grid:
    """Returns the runs as a table. Each is called by the instant of its plan, in UTC: the table fits a terminal because
    that is told once.
    """
    tones = tuple(map(tone_of, runs))
    remarks = tuple(map(_remark, runs))
    last = [_Column("remark", remarks)] if any(remarks) else []
    below = tuple(f"remark: {each}" if each else "" for each in remarks)
    narrow = tuple(replace(_grid(form, tones), below=below) for form in _narrow(runs))
    return replace(_grid([*_wide(runs), *last], tones), narrow=narrow)


def tone_of(status: RunStatus) -> Tone | None:
    """Returns the colour of a run's state."""
    return Tone.REFUSED if status.refusal else _TONES.get(status.state)


def why_cancelled(status: RunStatus) -> str:
    """Returns why a run was cancelled; nothing if nobody wrote it down."""
    return str(status.run.events[-1].detail.get("why") or "")


def _grid(columns: Sequence[_Column], tones: tuple[Tone | None, ...]) -> Grid:
    right = frozenset(place for place, each in enumerate(columns) if each.right)
    toned = next(place for place, each in enumerate(columns) if each.heading.startswith("state"))
    rows = tuple(zip(*(each.cells for each in columns), strict=True))
    return Grid(rows, tuple(each.heading for each in columns), right, tones, toned)


def _wide(runs: Sequence[RunStatus]) -> list[_Column]:
    files = [_files(each) for each in runs]
    return [
        _Column("run", tuple(map(_called, runs))),
        _Column("table", tuple(map(_table, runs))),
        *_states(runs),
        _snapshots(runs),
        _Column("files", tuple(number(each.files) for each in files), right=True),
        _Column("bytes", tuple(size(each.bytes) for each in files), right=True),
    ]


def _narrow(runs: Sequence[RunStatus]) -> Iterator[list[_Column]]:
    """Yields narrower forms: without the year of what is near, and with files and bytes together; then without
    snapshots; then without the state of what is in grace.
    """
    state, ends = _states(runs)
    named, files = _named(runs), _Column("files", tuple(map(_both, runs)), right=True)
    ends = replace(ends, cells=tuple(each[_YEAR:] for each in ends.cells))
    yield [*named, state, ends, _snapshots(runs), files]
    yield [*named, state, ends, files]
    in_grace = (
        end if each.state is RunState.COMMITTED else str(each.state)
        for each, end in zip(runs, ends.cells, strict=True)
    )  # fmt: skip
    yield [*named, _Column("state, grace", tuple(in_grace)), files]


def _named(runs: Sequence[RunStatus]) -> list[_Column]:
    """Returns what the runs are called, and their tables; what all tables have in common is told in a heading."""
    called, tables = tuple(map(_called, runs)), tuple(map(_table, runs))
    spaces = {each.rpartition(".")[0] for each in tables}
    if len(set(tables)) == 1:
        return [_Column(f"run of {tables[0]}" if tables[0] else "run", called)]
    if len(spaces) > 1 or "" in spaces:
        return [_Column("run", called), _Column("table", tables)]
    return [_Column("run", called), _Column(f"in {spaces.pop()}", tuple(each.rpartition(".")[2] for each in tables))]


def _states(runs: Sequence[RunStatus]) -> tuple[_Column, _Column]:
    return (
        _Column("state", tuple(each.state.value for each in runs)),
        _Column("grace ends", tuple(grace_end(each.run) for each in runs)),
    )


def _snapshots(runs: Sequence[RunStatus]) -> _Column:
    shown = (number(len(each.expired or each.run.plan["expire"])) for each in runs)
    return _Column("snapshots", tuple(shown), right=True)


def _called(status: RunStatus) -> str:
    return status.run.id.stamp if _table(status) else status.id


def _table(status: RunStatus) -> str:
    """Returns the table's name; nothing where that is a location, which the run's own name has."""
    return "" if is_location(status.run.id.table) else status.run.id.table


def _both(status: RunStatus) -> str:
    found = _files(status)
    return f"{number(found.files)}, {size(found.bytes)}"


def _files(status: RunStatus) -> Tally:
    """Returns what was deleted by a run that has ended; else what its list names."""
    if status.state is RunState.DONE:
        return status.outcomes.get("deleted", Tally())
    victims = status.run.plan["victims"]
    return Tally(int(victims["files"]), int(victims["bytes"]))


def _remark(status: RunStatus) -> str:
    """Returns what is not in the other columns: why a run was cancelled or refused, and what it waits for but grace."""
    if status.state is RunState.CANCELLED:
        return why_cancelled(status)
    if status.refusal is not None:
        return f"refused: {status.refusal.message}"
    if status.run.commit_due_ms is not None:
        return f"commits at {due_minute(status.run.commit_due_ms)}"
    waits = status.waits_told or (
        "" if status.run.is_meant or status.state is not RunState.PLANNED else "`firnline commit`"
    )
    return "" if not waits or status.due_ms is not None else f"waits for {waits}"
