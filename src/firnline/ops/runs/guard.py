"""What stands between a written list and a delete: asked again before every batch, and once more after it.

1. A purge looks at the table: nobody needs the file.
2. A writer commits a snapshot that names the file under its old path.
3. The delete of the batch arrives.

No store can tell a delete to wait for a commit, so a file can be lost in that moment. It must not be lost in silence:
the look before the next batch is also one after the last, and a look of its own follows the last batch of all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from shlex import quote
from typing import NamedTuple, Protocol

from firnline.errors import (
    CollectionForbidden,
    FirnlineError,
    NoSuchTable,
    ObjectNotFound,
    RefusedForSafety,
    StoreError,
    TakenUpAgain,
)
from firnline.journal.outcomes import Outcome, Row
from firnline.journal.parts import Seals, read_sound_parts
from firnline.journal.runs import Run
from firnline.model.files import Root
from firnline.model.locations import known_as, stem_of
from firnline.model.times import DAY_MS
from firnline.ops.neighbours.around import around
from firnline.ops.reachability.bounds import NOWHERE, Bounds
from firnline.ops.reachability.live_roots import forbidden, live_roots
from firnline.ops.reachability.since_plan import ReachableSincePlan
from firnline.ops.readers.needs import refuse_read
from firnline.ops.runs.decision import policy_in_force
from firnline.ops.runs.presence import listed_beside, look
from firnline.ops.table.context import TableContext
from firnline.ops.table.sources import refuse_mirror
from firnline.plans.kinds import ERASURE
from firnline.ports.abilities import NumberedBranches, UnprovedNames
from firnline.ports.engines import Engine, Territory
from firnline.ports.formats import State, TableFormat
from firnline.ports.stores import is_there

SPARED = "needed again: reachable from what the table, a hold, a pointer or an undoable run names now"
NEEDED_ELSEWHERE = "another table needs it now"
SPARED_IN_VAIN = "needed again, and gone: a process that died had deleted it"
YOUNG = "younger than a day, and the list that names it is not sealed with your key"
_THREADS = 32


class ListedFile(NamedTuple):
    """One line of the written list; a search also noted when the store says the object was written, and its tag."""

    key: str
    kind: str
    size: int | None
    modified_ms: int | None = None
    etag: str | None = None


class Guard(Protocol):
    def look_again(self) -> None:
        """Reads afresh whatever might need a file again. Raises where nothing may go now."""
        ...

    def look_back(self) -> None:
        """Reads, after a look that raised, whatever of that can be read: a look may stop before it asked all. Raises
        nothing itself.
        """
        ...

    def reasons_to_spare(self, lines: Sequence[ListedFile]) -> dict[str, str]:
        """Returns which of these files must stay after all, each with the reason. So the others are on their way."""
        ...

    def newly_needed(self, keys: Sequence[str]) -> set[str]:
        """Returns which of these very files looks since the last `reasons_to_spare` found needed, and none before: they
        may be gone.
        """
        ...


@dataclass(slots=True)
class TableGuard:
    """Guards the purge of an expiry: the table, read again by its uuid, what became reachable since, and what other
    tables need by now; and no file goes that lies where this table's files may not be deleted now.
    """

    work: TableContext
    run: Run
    since_plan: ReachableSincePlan
    elsewhere: ReachableSincePlan = field(init=False)
    bounds: Bounds = NOWHERE
    is_sound: bool = False
    _seen: str = field(default="", init=False)
    _finished: dict[str, Run] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.elsewhere = ReachableSincePlan(self.since_plan.choose, real=self.work.real)

    def look_again(self) -> None:
        self.work.real.forget()
        state = self.work.source.load()
        if not self.is_sound and isinstance(self.work.source.format, UnprovedNames):
            refuse_missing(self.work, state)
            state = self.work.source.load()  # it took its time, and a commit may have come
        self.is_sound = True
        self.work.same_table(state, self.run)
        self._seen = state.fence
        now_ms = self.work.now()
        policy = policy_in_force(state, self.work.source.name, self.work.config, self.run.request)
        handed_on = policy.archive.value is not None or self.run.kind == ERASURE
        refuse_forbidden(state, now_ms, handed_on=handed_on)
        refuse_read(self.work, state, self.run, policy, now_ms)
        refuse_emptied(self.work.source.format, state, self.run)
        self._ask_others(state)
        self._ask_table(state)

    def look_back(self) -> None:
        with suppress(FirnlineError):
            state = self._as_last_seen()
            self.since_plan.choose = self.elsewhere.choose = chosen_by(self.work, state)
            with suppress(FirnlineError):
                self._ask_others(state)
            self._ask_table(state)

    def _as_last_seen(self) -> State:
        """Returns the table; as it was at the last look if it was dropped since, or another has its name: then what
        that one needs counts among the others'.
        """
        with suppress(NoSuchTable):
            state = self.work.source.load()
            if state.uuid == self.run.uuid:
                return state
        return self.work.source.format.load(str(self.work.source.name), self._seen)

    def _ask_table(self, state: State) -> None:
        """Reads afresh what the table itself needs."""
        needs = live_roots(self.work, state, self.work.now(), but=self.run.id.stamp, finished=self._finished)
        self.since_plan.add(needs, self.work.source.format.expand)

    def _ask_others(self, state: State) -> None:
        """Reads afresh what other tables need."""
        outside = self.work.may_go_outside(state, self.run)
        found = around(self.work, state, everywhere=outside, but=self.run.id.stamp)
        bounds = self.work.bounds(state, self.run)
        self.bounds = replace(bounds, holes=found.holes, is_anothers=_foreign_to(self.work, state))
        for part in found.elsewhere:
            self.elsewhere.add(part.roots, part.expand)
        found.refuse_conflict()  # what the other one needs is known by now: the last batch may have taken it

    def reasons_to_spare(self, lines: Sequence[ListedFile]) -> dict[str, str]:
        self.since_plan.decide()
        self.elsewhere.decide()
        keys = [line.key for line in lines]
        doubted = {key: why for key in keys if (why := self.bounds.forbids(key)) is not None}
        doubted |= dict.fromkeys(self.elsewhere.spared(keys), NEEDED_ELSEWHERE)
        doubted |= dict.fromkeys(self.since_plan.spared(keys), SPARED)
        return doubted | self._young([line for line in lines if line.key not in doubted])

    def _young(self, lines: Sequence[ListedFile]) -> dict[str, str]:
        """Returns which files are younger than a day, or of no known age, if the list is not sealed: one
        who forged it could name what a writer is about to commit.
        """
        if self.run.is_sealed:
            return {}
        bound_ms = self.work.now() - DAY_MS
        with ThreadPoolExecutor(_THREADS) as pool:
            old = pool.map(lambda line: _is_older(self.work, line.key, bound_ms), lines)
            return {line.key: YOUNG for line, is_old in zip(lines, old, strict=True) if not is_old}

    def newly_needed(self, keys: Sequence[str]) -> set[str]:
        return self.since_plan.newly_needed(keys) | self.elsewhere.newly_needed(keys)


def _foreign_to(work: TableContext, state: State) -> Callable[[str], bool]:
    """Returns what tells of a real folder whether it belongs to another table that no catalog lists. A folder inside
    another table's folder belongs to the inner one, which may be this.

    1. A table of a catalog takes in a data file of a table that is known by its folder alone, and gives it up again.
    2. The file lies in its own folder, which is broad, or the operator says that files outside may go.
    3. Its expiry deletes what the other table reads: nobody had listed that one, so nobody asked it.
    """
    own = [work.real(stem_of(each)) for each in state.owned]
    takes_in = not work.source.format.paths_follow_folder

    def is_anothers(folder: str) -> bool:
        found = work.table_around(folder) if takes_in else None
        theirs = None if found is None else stem_of(found)
        return theirs is not None and not any(each.startswith(theirs) and folder.startswith(each) for each in own)

    return is_anothers


def chosen_by(work: TableContext, state: State) -> Callable[[], Engine]:
    """Returns what chooses an engine by a table as it was read: it may be gone by now."""
    return lambda: work.choose(state, work.source.format, "auto")


def refuse_missing(work: TableContext, state: State) -> None:
    """Raises RefusedForSafety if files that a table needs are not there, where its units name them unproved. Looks at
    every file: at the first look of a purge, and not before each batch.

    1. A bit of a manifest that stays turns: it names a chunk that nobody wrote, and the one that it named before only
       by an expired snapshot's manifest.
    2. That chunk goes with the expired snapshot, although readers of what stays need it.

    Then the name that nobody wrote is not in the store: a purge that looks for every needed file notices.
    """
    table_format = work.source.format
    if not isinstance(table_format, UnprovedNames):
        return
    engine = work.choose(state, table_format, "auto")
    roots = (Root(file, True, owner) for owner, file in table_format.roots(state))
    with closing(engine.survey(roots, table_format.expand, Territory(None))) as survey:
        listing = listed_beside(table_format, state, work.ranges, engine, survey)
        found = look(engine, survey, work.store, listing=listing)
    if found.faults:
        first = found.listed[0]
        raise RefusedForSafety(
            f"{found.faults:,} files that {state.table} needs are not as its metadata says, such as {first.path} "
            f"({first.problem}): {table_format.missing_means}",
            hint=f"nothing was removed; `firnline check {quote(state.table)}` lists them",
        )


def _is_older(work: TableContext, key: str, bound_ms: int) -> bool:
    """Tells whether the store says that an object was written before; one that is gone cannot be the wrong one."""
    try:
        modified_ms = work.store.head(key).modified_ms
    except ObjectNotFound:
        return True
    return modified_ms is not None and 0 < modified_ms < bound_ms


def refuse_emptied(table_format: TableFormat, state: State, run: Run) -> None:
    """Raises RefusedForSafety if a branch has no snapshot any more of which the plan kept some and the commit took
    others.

    Where nothing is compare-and-swap, a rollback may begin before the commit and end after it: then the snapshot went
    that it goes back to, and it took away all others.
    """
    if not isinstance(table_format, NumberedBranches) or run.removal is None:
        return
    kept = {name for each in run.plan.get("keep", ()) for name in each.get("refs", ())}
    shrunk = {table_format.branch_of(each) for each in run.removal.ids}
    emptied = sorted((kept & shrunk & (state.native.ranges or {}).keys()) - state.refs.keys())
    if emptied:
        raise RefusedForSafety(
            f"{state.table} has no snapshot on {emptied[0]} any more, and had some when {run.id} was planned",
            hint=f"nothing was removed; `firnline undo {quote(str(run.id))}` brings back what this run took out",
        )


def refuse_forbidden(state: State, now_ms: int, *, handed_on: bool = False) -> None:
    """Raises CollectionForbidden if a hold on the table, or the table's own word, forbids every removal; and
    RefusedForSafety if the table is a mirror of another format's.
    """
    refuse_mirror(state)
    reason = forbidden(state, now_ms, handed_on=handed_on)
    if reason:
        raise CollectionForbidden(
            f"nothing of {state.table} may be removed now: {reason}",
            hint="the run stays as it is; `firnline purge` goes on once that is lifted",
        )


def reachable_since_plan(work: TableContext, run: Run) -> ReachableSincePlan:
    """Returns what watches for needs beyond those that an expiry had walked; for all needs, where nothing but the
    record itself says that it had: a forger could declare every live unit walked.
    """
    kept = {str(each["snapshot"]) for each in run.plan["keep"]}
    parts = run.plan["parts"]["walked"]
    return _reachable_since(work, run, run.folder.walked, parts, lambda: work.source.load().owned, kept)


def reachable_since_search(work: TableContext, run: Run) -> ReachableSincePlan:
    """Returns what watches for needs beyond those that a search had walked. That opened what expires, too: it says
    nothing of what an expiry takes.
    """
    folders = [] if run.search is None else run.search["scope"]["folders"]
    return _reachable_since(work, run, run.folder.searched, run.plan["parts"]["searched"], lambda: folders)


def _reachable_since(
    work: TableContext,
    run: Run,
    folder: str,
    seals: Seals,
    within: Callable[[], Iterable[str]],
    kept: Collection[str] = (),
) -> ReachableSincePlan:
    same = _same_places(run)

    def choose() -> Engine:
        return work.choose(work.source.load(), work.source.format, "auto")

    if not run.is_sealed:
        return ReachableSincePlan(choose, real=work.real, same=same)

    def walked() -> Iterator[Iterable[str]]:
        """Yields the units, at the first look.

        1. A plan walks what the table needs, and lists a file of the same bytes that goes.
        2. During grace a program that saves room puts a link to the second one in the place of the first.

        So where there are links, what they lead to now is asked.
        """
        if not _have_links(work, within()):
            # A part that was changed since only means that more is walked again: the safe direction.
            parts = read_sound_parts(work.store, folder, seals)
            yield from (each.column("identity").to_pylist() for each in parts)

    return ReachableSincePlan(choose, walked(), kept, work.real, same)


def _have_links(work: TableContext, folders: Iterable[str]) -> bool:
    """Tells whether there are links in any of the folders, or may be: in one that cannot be read."""
    try:
        return any(work.store.links(each) for each in folders)
    except StoreError:
        return True


def names_of(work: TableContext, run: Run) -> Callable[[str], str]:
    """Returns what makes of an identity the one that files are compared by: where the operator of a search said that
    two places are one they still are, and then it is the real one, by whatever links.
    """
    same = _same_places(run)
    return (lambda name: work.real(known_as(name, same))) if same else work.real


def _same_places(run: Run) -> list[tuple[str, str]]:
    return [] if run.search is None else [(one, other) for one, other in run.search["scope"]["same"]]


_GONE = (Outcome.DELETED, Outcome.MISSING)
_NAMED = 5


def refuse_taken_up(work: TableContext, run: Run, guard: Guard, batch: Sequence[Row]) -> None:
    """Raises TakenUpAgain, naming the files, where something names by the guard's last look what this batch removed.

    A file that was written anew under its old name is there: then nothing was lost.
    """
    refuse_lost(work, run, guard.newly_needed([row.key for row in batch if row.outcome in _GONE]))


def refuse_lost(work: TableContext, run: Run, named: Iterable[str]) -> None:
    """Raises TakenUpAgain, naming them, if files that are needed are not there."""
    lost = _not_there(work, sorted(named))
    if lost:
        more = f" and {len(lost) - _NAMED:,} more" if len(lost) > _NAMED else ""
        raise TakenUpAgain(
            f"a commit named files again while {run.id} deleted them, and they are gone: "
            f"{', '.join(lost[:_NAMED])}{more}",
            hint="the run stopped. Bring the files back (versions of the bucket, a backup), or take the snapshots out "
            f"that name them: `firnline check {quote(run.id.table)}` lists all. Then "
            f"`firnline resume {quote(str(run.id))}` goes on",
        )


def without_spared_in_vain(work: TableContext, rows: Sequence[Row]) -> list[Row]:
    """Returns the rows of a part that a process which died may have begun: what is needed and not there, it took.

    The record says so before anybody is told: this process may die, too, and the next one looks back at what is gone.
    """
    gone = set(_not_there(work, [row.key for row in rows if row.why in (SPARED, NEEDED_ELSEWHERE)]))
    return [replace(row, outcome=Outcome.MISSING, why=SPARED_IN_VAIN) if row.key in gone else row for row in rows]


def _not_there(work: TableContext, keys: Sequence[str]) -> list[str]:
    with ThreadPoolExecutor(_THREADS) as pool:
        found = pool.map(lambda key: is_there(work.store, key), keys)
        return [key for key, is_found in zip(keys, found, strict=True) if not is_found]


def look_and_refuse_taken_up(work: TableContext, run: Run, guard: Guard, batch: Sequence[Row]) -> None:
    """Looks at the table before a batch, and so after the last one; raises as above, or as the guard does.

    1. While a batch is deleted another table takes files of it in; and the run's own table is dropped, or a hold comes.
    2. The look stops at what it reads first, and the run with it. Nobody would ever hear of the files.

    So a look that stops the run also tells what anything lost that came up, as far as that can be asked.
    """
    try:
        guard.look_again()
    except FirnlineError:
        if batch:
            guard.look_back()
        refuse_taken_up(work, run, guard, batch)
        raise
    refuse_taken_up(work, run, guard, batch)
