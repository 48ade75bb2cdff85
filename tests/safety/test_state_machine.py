"""Anything in any order: a table, its writers and firnline, against a model that only knows sets.

The model decides by Iceberg's own rules, written down once more and in a few lines. After every step the table has
exactly the snapshots and refs of the model, and every file of every snapshot that the table has, that an undoable run
could bring back, or that a hold names, lies there with the bytes it was written with.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from firnline.errors import CollectionForbidden
from firnline.journal.events import UNDOABLE, RunState
from firnline.journal.runs import Run, in_commit_order
from firnline.model.times import DAY_MS, HOUR_MS
from firnline.testing.dated import Clock
from firnline.testing.faults import Died, Dying, Fault, When
from harness.days import process_on_its_day
from harness.disks import local
from harness.processes import Process
from harness.world import World

FULL = os.environ.get("FIRNLINE_FULL") == "1"
STEPS = 25
EXAMPLES = 2_600 if FULL else 20
AT_LEAST = 50_000 if FULL else 400
SECOND = 1_000
FOREVER = 2**63 - 1

steps: Counter[str] = Counter()
"""What was done, over all examples: a machine that never crashed or undid anything would prove nothing."""


# ---------------------------------------------------------------- the model


@dataclass(frozen=True)
class Ref:
    snapshot: int
    kind: str
    max_age_ms: int = FOREVER


@dataclass(frozen=True)
class Table:
    """What the table should be. `born` has the time and parent of every snapshot there ever was."""

    snapshots: frozenset[int] = frozenset()
    refs: tuple[tuple[str, Ref], ...] = ()

    @property
    def by_name(self) -> dict[str, Ref]:
        return dict(self.refs)

    def with_refs(self, refs: dict[str, Ref]) -> Table:
        return replace(self, refs=tuple(sorted(refs.items(), key=lambda each: each[0])))


@dataclass(frozen=True)
class Wish:
    """How an expiry was asked for."""

    older_than: int
    retain_last: int


@dataclass
class Model:
    """Sets and Iceberg's rules: what stays is what a ref, an age or a hold keeps."""

    table: Table = field(default_factory=Table)
    born: dict[int, tuple[int, int | None]] = field(default_factory=dict)
    holds: dict[str, int | None] = field(default_factory=dict)

    def decide(self, table: Table, wish: Wish, now: int) -> tuple[set[int], set[str]]:
        """Returns the snapshots and refs that expire."""
        standing = {
            name: ref
            for name, ref in table.refs
            if name == "main" or now - self.born[ref.snapshot][0] <= ref.max_age_ms
        }
        kept = {ref.snapshot for ref in standing.values()} | {each for each in self.holds.values() if each is not None}
        on_a_branch: set[int] = set()
        for ref in (each for each in standing.values() if each.kind == "branch"):
            line = list(self.lineage(table, ref.snapshot))
            on_a_branch |= set(line)
            for place, each in enumerate(line):
                if place >= wish.retain_last and self.born[each][0] < wish.older_than:
                    break
                kept.add(each)
        loose = table.snapshots - on_a_branch - {ref.snapshot for ref in standing.values()}
        kept |= {each for each in loose if self.born[each][0] >= wish.older_than}
        return set(table.snapshots) - kept, table.by_name.keys() - standing.keys()

    def lineage(self, table: Table, head: int) -> Iterator[int]:
        at: int | None = head
        while at is not None and at in table.snapshots:
            yield at
            at = self.born[at][1]

    def without(self, table: Table, snapshots: Iterable[int], refs: Iterable[str]) -> Table:
        left = {name: ref for name, ref in table.refs if name not in set(refs)}
        return replace(table, snapshots=table.snapshots - set(snapshots)).with_refs(left)

    def expired(self, table: Table, planned: tuple[set[int], set[str]], wish: Wish, now: int) -> Table:
        """Returns the table after planned ∩ decided afresh went."""
        snapshots, refs = self.decide(table, wish, now)
        return self.without(table, snapshots & planned[0], refs & planned[1])

    def restored(self, table: Table, removal: dict[str, Any]) -> Table:
        back = table.snapshots | {each["snapshot-id"] for each in removal["snapshots"]}
        refs = {name: as_ref(said) for name, said in (removal["payload"].get("refs") or {}).items()}
        fitting = {name: ref for name, ref in refs.items() if ref.snapshot in back}
        return replace(table, snapshots=frozenset(back)).with_refs({**fitting, **table.by_name})


def as_ref(said: dict[str, Any]) -> Ref:
    return Ref(said["snapshot-id"], said["type"], said.get("max-ref-age-ms", FOREVER))


# ---------------------------------------------------------------- the world


class Still(Clock):
    """A clock that stands until it is moved, so that the model and firnline decide at the same instant."""

    def __init__(self) -> None:
        super().__init__()
        self.base = Clock()()

    def __call__(self) -> int:
        return self.base + self.ahead_ms


def make_world(folder: Path) -> World:
    world = World.make(folder, history=False, properties={"history.expire.max-snapshot-age-ms": str(DAY_MS)})
    world.clock = world.writer.now = Still()
    return world


seeds = st.integers(0, 2**32 - 1)
PURGEABLE = (RunState.COMMITTED, RunState.PURGING)
NOT_PURGED = (*UNDOABLE, RunState.PLANNED)
WHEN: tuple[When, ...] = ("before", "after")


class Lifecycle(RuleBasedStateMachine):
    """One table. Two of five acts of firnline are cut at some durable effect, if they get so far."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="firnline-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
        self.world = make_world(self.folder / "world")
        self.model = Model()
        self.runs: list[Run] = []
        self.acted = False
        self.seed = 0

    def teardown(self) -> None:
        self.world.check()
        self.world.catalog.close()
        shutil.rmtree(self.folder)

    # ---- small words

    def tick(self, what: str) -> None:
        steps[what] += 1
        self.world.clock.advance(SECOND)

    def process(self, fault: Fault | None = None) -> Process:
        self.acted = True
        return process_on_its_day(self.world, fault)

    def chance(self, seed: int) -> random.Random:
        """Returns choices that differ from step to step: Hypothesis likes one seed, and rare company is rare enough."""
        return random.Random(f"{self.seed} {self.world.clock.ahead_ms} {seed}")

    def committed(self, snapshot: int, on: str | None) -> None:
        """Notes a writer's commit in the model."""
        table, now = self.model.table, self.world.clock()
        refs = table.by_name
        parent = refs.get("main" if on is None else on)
        self.model.born[snapshot] = (now, None if parent is None else parent.snapshot)
        if on is not None:
            before = refs.get(on, Ref(0, "branch"))
            refs[on] = replace(before, snapshot=snapshot)
        self.model.table = replace(table, snapshots=table.snapshots | {snapshot}).with_refs(refs)

    def act(self, name: str, do: Callable[[Process], Any], chain: list[Table], chance: random.Random) -> Any:
        """Does it in a process that may die. `chain` are the states on the way; the last is where it ends.

        A process that died may have come to any of them; one that lived must have come to the last.
        """
        self.tick(name)
        crash = (
            Dying(at=chance.randint(1, chance.choice([6, 30])), when=chance.choice(WHEN))
            if chance.random() < 0.4
            else None
        )
        try:
            result = do(self.process(crash))
        except Died:
            steps[f"{name}, crashed"] += 1
            self.world.wait_for_lease()
            seen = self.seen()
            assert seen in chain, f"{name} crashed and left a table that is neither before nor after"
            self.model.table = seen
            return None
        self.model.table = chain[-1]
        return result

    def seen(self) -> Table:
        document = self.world.writer.document()
        found = Table(frozenset(each["snapshot-id"] for each in document["snapshots"]))
        return found.with_refs({name: as_ref(said) for name, said in document["refs"].items()})

    def removed(self) -> list[int]:
        """Returns the snapshots that runs took out and that may still come back."""
        return sorted({each for run in self.runs for each in removed(run)})

    # ---- writers

    @initialize(seed=seeds)
    def live_some_days(self, seed: int) -> None:
        """Something to begin with: in many examples Hypothesis leaves some of the rules out."""
        self.seed = seed
        chance = self.chance(seed)
        self.tick("commit")
        self.committed(self.world.writer.append(2), "main")
        for _ in range(4):
            self.write_something(chance)

    @rule(seed=seeds)
    def write(self, seed: int) -> None:
        self.write_something(self.chance(seed))

    def write_something(self, chance: random.Random) -> None:
        what = chance.choice(["commit", "commit", "overwrite", "delete", "compact", "stage", "add again", "add again"])
        self.tick(what)
        branches = [name for name, ref in self.model.table.refs if ref.kind == "branch"]
        on = None if what == "stage" else chance.choice(branches)
        writer = self.world.writer
        held = sorted(item.path for item in writer.live(on or "main") if not item.content)
        if what == "overwrite":
            self.committed(writer.overwrite(held[: chance.randint(1, 3)], 1, on=on or "main"), on)
        elif what == "delete" and held:
            self.committed(writer.delete_rows(chance.choice(held), (chance.randint(0, 9),), on=on or "main"), on)
        elif what == "compact":
            self.committed(writer.compact(on=on or "main"), on)
        elif what == "add again" and (gone := self.once_held(set(held))):
            self.committed(writer.commit("append", [writer.ledger.items[chance.choice(gone)]], on=on), on)
        else:
            self.committed(writer.append(chance.randint(1, 2), on=on), on)

    def once_held(self, held: set[str]) -> list[str]:
        """Returns files that can come back under their old path, where possible some that a purge has on its list."""
        ledger = self.world.writer.ledger
        gone = [path for path, item in ledger.items.items() if path not in held and not item.content]
        there = [path for path in gone if local(path).exists()]
        live = {path for each in self.model.table.snapshots for path in ledger.truths[each].files}
        return [path for path in there if path not in live] or there

    @rule(seed=seeds)
    def move_ref(self, seed: int) -> None:
        chance = self.chance(seed)
        table, what = self.model.table, chance.choice(["tag", "tag", "branch", "roll back"])
        self.tick(what)
        snapshot = chance.choice(sorted(table.snapshots))
        days = chance.choice([None, None, 1, 3])
        name, ref = f"{what}-{chance.randint(1, 3)}", Ref(snapshot, what, FOREVER if days is None else days * DAY_MS)
        if what == "roll back":
            snapshot = chance.choice(list(self.model.lineage(table, table.by_name["main"].snapshot)))
            self.world.writer.roll_back(snapshot)
            name, ref = "main", replace(table.by_name["main"], snapshot=snapshot)
        else:
            retention = {} if days is None else {"max_ref_age_ms": days * DAY_MS}
            self.world.writer.set_ref(name, snapshot, what, **retention)
        self.model.table = table.with_refs({**table.by_name, name: ref})

    @precondition(lambda self: any(not run.is_finished for run in self.runs))
    @rule(hours=st.sampled_from([1, 7, 30]))
    def time_passes(self, hours: int) -> None:
        self.tick("time passes")
        self.world.clock.advance(hours * HOUR_MS)

    # ---- holds

    @rule(seed=seeds)
    def hold_or_release(self, seed: int) -> None:
        chance = self.chance(seed)
        free = sorted({"x", "y"} - self.model.holds.keys())
        if self.model.holds and (not free or chance.random() < 0.5 or None in self.model.holds.values()):
            self.release(chance.choice(sorted(self.model.holds)), chance)
        else:
            self.hold(free[0], chance)

    def hold(self, name: str, chance: random.Random) -> None:
        """Holds the table, a snapshot of it, or one that a run took out and whose files are all still there."""
        table = held = self.model.table
        snapshot = chance.choice([None, *[chance.choice(sorted(table.snapshots))] * 4, *self.removed()[:4]])
        if snapshot in table.snapshots:
            held = table.with_refs({**table.by_name, f"firnline-hold-{name}": Ref(snapshot, "tag")})
        self.act("hold", lambda process: process.hold_add(self.world.table, name, snapshot), [table, held], chance)
        if f"firnline.hold.{name}" in self.world.writer.document()["properties"]:
            self.model.holds[name] = snapshot

    def release(self, name: str, chance: random.Random) -> None:
        table = self.model.table
        free = self.model.without(table, (), {f"firnline-hold-{name}"})
        self.act("release", lambda process: process.hold_release(self.world.table, name), [table, free], chance)
        if f"firnline.hold.{name}" not in self.world.writer.document()["properties"]:
            del self.model.holds[name]

    # ---- firnline

    @precondition(lambda self: sum(not run.is_finished for run in self.runs) < 4)
    @rule(seed=seeds)
    def expire(self, seed: int) -> None:
        """Cuts somewhere in the history, so that several runs in grace share files with each other."""
        chance = self.chance(seed)
        while not (cuts := self.cuts()):
            self.write_something(chance)
        now, table = self.world.clock() + SECOND, self.model.table
        wish = chance.choice(cuts)
        after = self.model.without(table, *self.model.decide(table, wish, now))
        grace = chance.choice(["0s", "6h", "24h"])
        options = {"older_than": wish.older_than, "retain_last": wish.retain_last, "grace": grace, "blast_radius": 1.0}
        if None in self.model.holds.values():
            self.forbidden("expire", lambda process: process.expire(self.world.table, **options))
            return
        self.act("expire", lambda process: process.expire(self.world.table, **options), [table, after], chance)

    def perhaps_grace_ends(self, chance: random.Random) -> None:
        if chance.random() < 0.6:
            self.world.clock.advance(25 * HOUR_MS)

    def cuts(self) -> list[Wish]:
        """Returns the wishes that take something out."""
        now, table = self.world.clock() + SECOND, self.model.table
        moments = sorted({self.model.born[each][0] + 1 for each in table.snapshots})
        wishes = [Wish(moment, retain) for moment in moments for retain in (1, 1, 2)]
        return [wish for wish in wishes if self.model.decide(table, wish, now)[0]]

    @precondition(lambda self: any(not run.is_finished for run in self.runs))
    @rule(seed=seeds)
    def resume(self, seed: int) -> None:
        """Every unfinished run goes as far as it may; those that died before their commit commit now."""
        chance = self.chance(seed)
        self.perhaps_grace_ends(chance)
        if None in self.model.holds.values():
            self.may_be_forbidden("resume", lambda process: process.resume(self.world.table), self.undone_by_resume())
            return
        self.act("resume", lambda process: process.resume(self.world.table), self.states_of_resume(), chance)

    @precondition(lambda self: any(run.state in PURGEABLE for run in self.runs))
    @rule(seed=seeds)
    def purge(self, seed: int) -> None:
        chance = self.chance(seed)
        self.perhaps_grace_ends(chance)
        table = self.model.table
        if None in self.model.holds.values():
            self.may_be_forbidden("purge", lambda process: process.purge_table(self.world.table), [table])
            return
        self.act("purge", lambda process: process.purge_table(self.world.table), [table], chance)

    @precondition(lambda self: any(run.state in NOT_PURGED for run in self.runs))
    @rule(seed=seeds)
    def undo(self, seed: int) -> None:
        """Whatever is not being purged and not finished can be undone, always."""
        chance = self.chance(seed)
        run = chance.choice([run for run in self.runs if run.state in NOT_PURGED])
        table, back = self.model.table, self.after_undo(run)
        carried = self.act("undo", lambda process: process.undo(str(run.id)), [table, back], chance)
        if carried is not None:
            assert carried.state in ("undone", "cancelled")

    def forbidden(self, name: str, do: Callable[[Process], Any]) -> None:
        self.tick(name)
        with pytest.raises(CollectionForbidden):
            do(self.process())

    def may_be_forbidden(self, name: str, do: Callable[[Process], Any], chain: list[Table]) -> None:
        """A table hold stops whatever would remove something; what is left to do may be nothing."""
        self.tick(name)
        try:
            do(self.process())
        except CollectionForbidden:
            steps[f"{name}, forbidden"] += 1
        seen = self.seen()
        assert seen in chain
        self.model.table = seen

    # ---- what firnline should come to

    def after_undo(self, run: Run) -> Table:
        """Returns the table after an undo: a run that never got its commit in is only cancelled."""
        landed = self.landed(run)
        return self.model.table if landed is None else self.model.restored(self.model.table, landed)

    def landed(self, run: Run) -> dict[str, Any] | None:
        """Returns what the run took out of the table; None where none of its tries is in the table."""
        if run.committed is not None:
            return dict(run.committed.detail["removal"])
        document = self.world.writer.document()
        known = {self.world.writer.place(), *(each["metadata-file"] for each in document["metadata-log"])}
        for event in run.attempts:
            if event.detail["location"] in known:
                return dict(event.detail["removal"])
        if run.attempts:
            removal = dict(run.attempts[-1].detail["removal"])
            gone = {each["snapshot-id"] for each in removal["snapshots"]}
            if gone and not gone & self.model.table.snapshots:
                return removal
        return None

    def states_of_resume(self) -> list[Table]:
        chain, runs = [self.model.table], self.runs
        tried = in_commit_order(runs)
        now = self.world.clock() + SECOND
        for run in (*tried, *(each for each in runs if each not in tried)):
            table = chain[-1]
            if run.state is RunState.UNDOING:
                chain.append(self.model.restored(table, self.landed(run) or {"snapshots": []}))
            elif run.state in (RunState.PLANNED, RunState.COMMITTING) and self.landed(run) is None:
                request = run.request
                wish = Wish(request.older_than_ms or 0, request.retain_last or 1)
                planned = ({int(each) for each in run.plan["expire"]}, set(run.plan["expire_refs"]))
                chain.append(self.model.expired(table, planned, wish, now))
        return chain

    def undone_by_resume(self) -> list[Table]:
        """Returns the states that a resume may come to while the table is held: an undo goes on even then."""
        chain = [self.model.table]
        for run in in_commit_order(self.runs):
            if run.state is RunState.UNDOING:
                chain.append(self.model.restored(chain[-1], self.landed(run) or {"snapshots": []}))
        return chain

    # ---- what must hold after every step

    @invariant()
    def the_table_is_what_the_model_says(self) -> None:
        steps["all,"] += 1
        assert self.seen() == self.model.table

    @invariant()
    def every_snapshot_has_every_file(self) -> None:
        if self.acted:
            work = self.process().places.table_context(self.world.table)
            self.runs = work.runs(work.source.load())
            self.acted = False
        needed = set(self.model.table.snapshots) | {each for run in self.runs for each in removed(run)}
        needed |= {each for each in self.model.holds.values() if each is not None}
        ledger = self.world.writer.ledger
        for path in {path for each in needed for path in ledger.truths[each].files}:
            assert local(path).read_bytes() == ledger.contents[path]


def removed(run: Run) -> set[int]:
    """Returns what may come back, and so must be whole: nothing where the run cannot be undone any more."""
    return {each["snapshot-id"] for removal in run.removals for each in removal.snapshots}


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test's folder need not survive a power cut."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


def test_any_order_of_anything(
    capsys: pytest.CaptureFixture[str], record_property: Callable[[str, object], None]
) -> None:
    chosen = settings(
        max_examples=EXAMPLES,
        stateful_step_count=STEPS,
        deadline=None,
        derandomize=not FULL,
        database=None,
        phases=[Phase.generate, Phase.shrink] if FULL else [Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    steps.clear()
    run_state_machine_as_test(Lifecycle, settings=chosen)
    done = steps.pop("all,") - EXAMPLES
    record_property("count: state machine", {"steps": done})
    with capsys.disabled():
        print(
            f"\nstate machine: {done:,} steps:", ", ".join(f"{name} {number}" for name, number in sorted(steps.items()))
        )
    assert done >= AT_LEAST
    # Twenty short lives may by chance hold no crash of one rare act; thousands cannot.
    rare = ("resume, crashed", "purge, crashed", "undo, crashed")
    assert all(steps[each] for each in rare) if FULL else any(steps[each] for each in rare), steps
    for each in ("expire, crashed", "resume", "purge", "undo", "hold"):
        assert steps[each], f"the machine never came to: {each}"
