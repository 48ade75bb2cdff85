"""Answering "why is this still here?" for a snapshot, a ref or a file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from firnline.errors import UsageError
from firnline.model.files import File
from firnline.model.locations import identity, is_dotted, join
from firnline.model.snapshots import SnapshotId, changes_of, snapshot_of
from firnline.ops.drop import consequences_of
from firnline.ops.needing import Needer, needing
from firnline.ops.needs import may_come_back
from firnline.ops.neighbours.around import around
from firnline.ops.settle import Settled, settle
from firnline.ops.workplace import Workplace
from firnline.plans.answers import CHANGELOG, OWN_METADATA, RUN, SNAPSHOT, TABLE, Answer, Own, SnapshotAnswer
from firnline.plans.request import Request
from firnline.policy.why import explain_expired
from firnline.ports.formats import Beside, Consequences, State, Told

_WHOLE = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")


@dataclass(frozen=True, slots=True)
class _Case:
    """A table as it is, what was decided on it, and what follows. `before` is the table with what may come back, by
    what brings it back.
    """

    work: Workplace
    state: State
    settled: Settled
    follows: Consequences
    before: dict[str, State]

    @staticmethod
    def of(work: Workplace, request: Request) -> _Case:
        state, now_ms = work.source.load(), work.now()
        settled = settle(state, work.source.name, work.config, request, now_ms)
        table_format, before = work.source.format, dict[str, State]()
        for run, removal in may_come_back(work, state, now_ms):
            before[str(run.id)] = table_format.with_removal(before.get(str(run.id), state), removal)
        return _Case(work, state, settled, consequences_of(table_format, state, settled), before)

    def roots(self) -> Iterator[tuple[Needer, File]]:
        """Yields the roots of the table, and those of owners that only a run may bring back."""
        own = list(self.work.source.format.roots(self.state))
        yield from ((Needer(owner), file) for owner, file in own)
        known = {owner for owner, _ in own}
        for run, state in self.before.items():
            found = self.work.source.format.roots(state)
            yield from ((Needer(owner, run), file) for owner, file in found if owner not in known)

    def beside(self, kind: str, name: str) -> tuple[Beside, bool] | None:
        """Returns something that the table has beside snapshots, and whether it stays; None where it has no such."""
        found = [(each, True) for each in self.follows.staying] + [(each, False) for each in self.follows.going]
        return next((each for each in found if (each[0].kind, each[0].name) == (kind, name)), None)


def why(work: Workplace, request: Request, what: str) -> Answer:
    """Returns the answer for a snapshot id, a ref's name or a file's path. Raises where the table has no such thing."""
    case = _Case.of(work, request)
    state = case.state
    snapshot = what if what in state.graph else (state.refs[what].snapshot if what in state.refs else None)
    if snapshot is not None and snapshot in state.graph:
        return Answer(state.table, None, (_about(snapshot, case),))
    if "/" not in what:
        raise UsageError(
            f"{state.table} has no snapshot or ref {what!r}",
            hint="`firnline plan TABLE --list` shows the snapshots; a file is named by its path",
        )
    return _about_file(what, case)


def _about_file(what: str, case: _Case) -> Answer:
    state, table_format = case.state, case.work.source.format
    path = _resolved(what, state.location)
    for each in table_format.metadata_files(state):
        if identity(path) == identity(each):
            return Answer(state.table, path, (), _own(table_format.told_in(state, each), case))
    needers = needing(identity(path), case.roots(), table_format.expand, case.work.progress)
    if not needers and path != what and not Path(path).exists():
        raise UsageError(f"{what!r} is no file here and none of {state.table}", hint="name the file by its whole path")
    return Answer(state.table, path, (*_newest_first(_answers(needers, case)), *_of_others(identity(path), case)))


def _of_others(target: str, case: _Case) -> Iterator[SnapshotAnswer]:
    """Yields the other tables that need the file."""
    elsewhere = around(case.work, case.state, everywhere=True).elsewhere
    if elsewhere is not None:
        roots = ((Needer(root.owner), root.file) for root in elsewhere.roots)
        found = needing(target, roots, elsewhere.expand, case.work.progress)
        for table in sorted(needer.owner for needer in found):
            yield SnapshotAnswer(table, None, True, (), ("this table needs it too",), TABLE)


def _own(told: Told | None, case: _Case) -> Own:
    """Returns what a metadata file is: what it alone tells of stays or goes, and the file with it."""
    match told:
        case None:
            return Own(OWN_METADATA)
        case Told("snapshot", name):
            answer = _about(name, case)
            tag = case.follows.tagged.get(name)
            left = () if tag is None else (f"it leaves this folder as the tag {tag}",)
            return Own(f"snapshot {name}", answer.kept and tag is None, (*left, *answer.reasons))
        case Told("ref", name):
            ref, gone = case.state.refs[name], name in case.settled.decision.expired_refs
            reasons = ("its time is over",) if gone else ()
            return Own(f"{ref.kind} {name}", not gone, reasons)
        case Told(kind, name):
            found = case.beside(kind, name)
            return Own(f"{kind} {name}") if found is None else Own(found[0].id, found[1], (found[0].why,))


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
        if needer.run:
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
    found, graph = case.beside(CHANGELOG, snapshot), case.state.graph
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
