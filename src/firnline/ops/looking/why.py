"""Answering "why is this still here?" for a snapshot, a ref or a file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from firnline.errors import UsageError
from firnline.model.files import File
from firnline.model.locations import identity, is_dotted, join
from firnline.model.snapshots import SnapshotId, changes_of, snapshot_of
from firnline.model.times import format_instant
from firnline.ops.neighbours.around import around
from firnline.ops.reachability.live_roots import may_come_back
from firnline.ops.reachability.pointed import pointed_versions
from firnline.ops.reachability.who_needs import Needer, who_needs
from firnline.ops.readers.needs import reader_needs
from firnline.ops.runs.decision import Settled, decide_now
from firnline.ops.runs.drop import consequences_of
from firnline.ops.table.context import TableContext
from firnline.plans.request import Request
from firnline.policy.why import explain_expired
from firnline.ports.abilities import Consequences, PointedVersion, SideObject, SplitMetadata, Subject
from firnline.ports.formats import State

OWN_METADATA = "the table's own metadata"
SNAPSHOT, CHANGELOG, RUN, TABLE, POINTER = "snapshot", "changelog", "run", "table", "pointer"


@dataclass(frozen=True, slots=True)
class SnapshotAnswer:
    """Why one snapshot stays, or why nothing keeps it.

    `kind` is who needs a file: the snapshot itself, the changelog that outlives it, a run that took it out and may
    put it back, readers of a pointer, or another table, which then stands in the snapshot's place. A snapshot that was
    left as a changelog alone may have no known time.
    """

    snapshot: SnapshotId
    timestamp_ms: int | None
    kept: bool
    refs: tuple[str, ...]
    reasons: tuple[str, ...]
    kind: str = SNAPSHOT

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "snapshot": self.snapshot,
            "timestamp": None if self.timestamp_ms is None else format_instant(self.timestamp_ms),
            "kept": self.kept,
            "refs": list(self.refs),
            "reasons": list(self.reasons),
        }


@dataclass(frozen=True, slots=True)
class OwnDocument:
    """What a metadata file is to its table, such as one tag, and whether and why that stays."""

    what: str
    kept: bool = True
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why something is here. `file` None: the question was about a snapshot. `needed_by` is newest first.

    `own`: the file is the table's metadata, and nothing else needs it.
    """

    table: str
    file: str | None
    needed_by: tuple[SnapshotAnswer, ...]
    own: OwnDocument | None = None

    @property
    def kept(self) -> bool:
        return self.own.kept if self.own is not None else any(each.kept for each in self.needed_by)

    def to_json(self) -> dict[str, Any]:
        answers = [each.to_json() for each in self.needed_by]
        if self.file is None:
            return {"table": self.table, **answers[0]}
        reasons = {} if self.own is None else {"reasons": [self.own.what, *self.own.reasons]}
        return {"table": self.table, "file": self.file, "kept": self.kept, "needed_by": answers, **reasons}

    def __str__(self) -> str:
        from firnline.ops.looking.pages import why_page

        return why_page(self).to_text()

    def _repr_html_(self) -> str:
        from firnline.ops.html.why import why_html

        return why_html(self)


_WHOLE = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")


@dataclass(frozen=True, slots=True)
class _Case:
    """A table as it is, what was decided on it, and what follows. `before` is the table with what may come back, by
    what brings it back.
    """

    work: TableContext
    state: State
    settled: Settled
    follows: Consequences
    before: dict[str, State]
    pointed: tuple[PointedVersion, ...]

    @staticmethod
    def of(work: TableContext, request: Request) -> _Case:
        state, now_ms = work.source.load(), work.now()
        pointed = pointed_versions(work.source.format, state)
        read = reader_needs(work, state, request, now_ms)
        settled = decide_now(work.source.format, state, work.source.name, work.config, request, now_ms, pointed, read)
        table_format, before = work.source.format, dict[str, State]()
        for run, removal in may_come_back(work, state, now_ms):
            before[str(run.id)] = table_format.with_removal(before.get(str(run.id), state), removal)
        return _Case(work, state, settled, consequences_of(table_format, state, settled), before, pointed)

    def roots(self) -> Iterator[tuple[Needer, File]]:
        """Yields the roots of the table, and those of owners that only a run may bring back."""
        own = list(self.work.source.format.roots(self.state))
        yield from ((Needer(owner), file) for owner, file in own)
        known = {owner for owner, _ in own}
        for run, state in self.before.items():
            found = self.work.source.format.roots(state)
            yield from ((Needer(owner, run), file) for owner, file in found if owner not in known)
        for each in self.pointed:
            yield from ((Needer(str(each.snapshot), pointer=each.pointer.name), file) for file in each.files)

    def side_objects(self, kind: str, name: str) -> tuple[SideObject, bool] | None:
        """Returns something that the table has beside snapshots, and whether it stays; None where it has no such."""
        found = [(each, True) for each in self.follows.staying] + [(each, False) for each in self.follows.going]
        return next((each for each in found if (each[0].kind, each[0].name) == (kind, name)), None)


def _guess(what: str, state: State) -> str:
    """Returns a hint at the refs whose names are near, or at what shows all snapshots."""
    near = get_close_matches(what, state.refs)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return "`firnline plan TABLE --list` shows the snapshots; a file is named by its path"


def why(work: TableContext, request: Request, what: str) -> Explanation:
    """Returns the answer for a snapshot id, a ref's name or a file's path. Raises where the table has no such thing."""
    case = _Case.of(work, request)
    state = case.state
    snapshot = what if what in state.graph else (state.refs[what].snapshot if what in state.refs else None)
    if snapshot is not None and snapshot in state.graph:
        return Explanation(state.table, None, (_about(snapshot, case),))
    if "/" not in what:
        raise UsageError(f"{state.table} has no snapshot or ref {what!r}", hint=_guess(what, state))
    return _about_file(what, case)


def _about_file(what: str, case: _Case) -> Explanation:
    state, table_format = case.state, case.work.source.format
    path = _resolved(what, state.location)
    for each in table_format.metadata_files(state):
        if identity(path) == identity(each):
            told = table_format.subject_of(state, each) if isinstance(table_format, SplitMetadata) else None
            return Explanation(state.table, path, (), _own(told, case))
    for version in case.pointed:
        if identity(path) == identity(version.pointer.metadata):
            named = OwnDocument(f"metadata that the pointer {version.pointer.name} names")
            return Explanation(state.table, path, (), named)
    needers = who_needs(identity(path), case.roots(), table_format.expand, case.work.progress)
    if not needers and path != what and not Path(path).exists():
        raise UsageError(f"{what!r} is no file here and none of {state.table}", hint="name the file by its whole path")
    return Explanation(state.table, path, (*_newest_first(_answers(needers, case)), *_of_others(identity(path), case)))


def _of_others(target: str, case: _Case) -> Iterator[SnapshotAnswer]:
    """Yields the other tables that need the file."""
    found: set[str] = set()
    for part in around(case.work, case.state, everywhere=True).elsewhere:
        roots = ((Needer(root.owner), root.file) for root in part.roots)
        found |= {needer.owner for needer in who_needs(target, roots, part.expand, case.work.progress)}
    for table in sorted(found):
        yield SnapshotAnswer(table, None, True, (), ("this table needs it too",), TABLE)


def _own(told: Subject | None, case: _Case) -> OwnDocument:
    """Returns what a metadata file is: what it alone tells of stays or goes, and the file with it."""
    match told:
        case None:
            return OwnDocument(OWN_METADATA)
        case Subject("snapshot", name):
            answer = _about(name, case)
            tag = case.follows.tagged.get(name)
            left = () if tag is None else (f"it leaves this folder as the tag {tag}",)
            return OwnDocument(f"snapshot {name}", answer.kept and tag is None, (*left, *answer.reasons))
        case Subject("ref", name):
            ref, gone = case.state.refs[name], name in case.settled.decision.expired_refs
            reasons = ("its time is over",) if gone else ()
            return OwnDocument(f"{ref.kind} {name}", not gone, reasons)
        case Subject(kind, name):
            found = case.side_objects(kind, name)
            return (
                OwnDocument(f"{kind} {name}") if found is None else OwnDocument(found[0].id, found[1], (found[0].why,))
            )


def _resolved(what: str, location: str) -> str:
    """Returns the whole path that is meant: a relative one is a file of this folder, or else of the table's.

    Segments `.` and `..` are walked here for local paths: no path that a table names has any.
    """
    if _WHOLE.match(what):
        if is_dotted(what):
            raise UsageError(f"{what!r} has a segment '.' or '..'", hint="name the file by its plain path")
        return what
    here = Path(os.path.abspath(what))
    if what.startswith("/"):
        return str(here) if is_dotted(what) else what
    return str(here) if here.exists() else join(location, os.path.normpath(what))


def _newest_first(answers: Iterable[SnapshotAnswer]) -> tuple[SnapshotAnswer, ...]:
    """Returns the answers, of those about one thing the one that keeps it."""
    found: dict[tuple[str, SnapshotId], SnapshotAnswer] = {}
    for each in sorted(answers, key=lambda each: (each.kept, each.reasons)):
        found[each.kind, each.snapshot] = each
    return tuple(sorted(found.values(), key=lambda each: (-(each.timestamp_ms or 0), each.kind, each.snapshot)))


def _answers(needers: Iterable[Needer], case: _Case) -> Iterator[SnapshotAnswer]:
    for needer in needers:
        snapshot = snapshot_of(needer.owner)
        if needer.pointer:
            reason = f"readers of the pointer {needer.pointer} need it"
            yield SnapshotAnswer(snapshot, None, True, (), (reason,), POINTER)
        elif needer.run:
            yield _of_run(snapshot, needer.run, case)
        elif needer.owner == snapshot:
            if snapshot in case.state.graph:
                yield _about(snapshot, case)
        else:
            yield _of_changes(snapshot, case)


def _of_run(snapshot: SnapshotId, run: str, case: _Case) -> SnapshotAnswer:
    """Returns the answer for what a run took out: an undo needs it, or a hold that came in time."""
    graph = case.before[run].graph
    at_ms = graph[snapshot].timestamp_ms if snapshot in graph else None
    return SnapshotAnswer(snapshot, at_ms, True, (), (f"{run} took it out and may put it back",), RUN)


def _of_changes(snapshot: SnapshotId, case: _Case) -> SnapshotAnswer:
    """Returns the answer for what only readers of changes need: of a snapshot, or of the changelog that outlives it."""
    found, graph = case.side_objects(CHANGELOG, snapshot), case.state.graph
    if found is not None and (snapshot not in graph or graph[snapshot].number is None):
        return SnapshotAnswer(snapshot, found[0].time_ms, found[1], (), (found[0].why,), CHANGELOG)
    answer = _about(snapshot, case)
    if found is not None:
        return replace(answer, kept=found[1], reasons=(f"as a changelog from then on: {found[0].why}",))
    if answer.kept and changes_of(snapshot) in case.follows.released:
        return replace(answer, kept=False, reasons=("its changes go: it stays as a tag, and a tag holds none",))
    return answer


def _about(snapshot: SnapshotId, case: _Case) -> SnapshotAnswer:
    state, kept = case.state, case.settled.decision.kept
    refs = tuple(ref.name for ref in state.refs.values() if ref.snapshot == snapshot)
    words = tuple(map(str, kept[snapshot])) if snapshot in kept else _why_expired(snapshot, state, case.settled)
    return SnapshotAnswer(snapshot, state.graph[snapshot].timestamp_ms, snapshot in kept, refs, words, SNAPSHOT)


def _why_expired(snapshot: SnapshotId, state: State, settled: Settled) -> tuple[str, ...]:
    now_ms, policy = settled.decision.now_ms, settled.effective.policy
    return explain_expired(
        snapshot, state.graph, state.refs, state.current, settled.native, policy=policy, now_ms=now_ms
    )
