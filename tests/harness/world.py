"""A small world: one real Iceberg table in a SQL catalog, a few weeks of history, and a judge of what is left of it.

    world = World.make(folder)
    world.process(fault).expire(world.table, grace="0s")
    world.check()                         # raises AssertionError, naming every file that a snapshot lost
    world.actions.tag()                   # what another writer does meanwhile; see harness.actions
    world.clock.advance(60_000)           # leases and grace run out without waiting

By default retention (five days), the history below expires the snapshots s1, s3, s4, s5 and s7 and the tag `aged`:

    main   s1 ── s2 ── s3 ── s4 ── s7 ── s8 ── s9        tags: release → s2, aged → s4 (for a day)
                  └── s6 (branch audit)    └ s5 staged on s4, in no branch
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from firnline.catalogs.rest.catalog import RestCatalog
from firnline.catalogs.sql import SqlCatalog
from firnline.journal.lease import LeaseTimes
from firnline.model.times import DAY_MS
from firnline.testing.dated import Clock
from firnline.testing.faults import Fault
from harness.actions import Actions
from harness.grounds import Ground, local_ground
from harness.judging import Judge
from harness.pictures import Picture, picture_of
from harness.pointers import CATALOG, Pointers
from harness.processes import Process
from harness.writers import Ledger, Writer

LEASE = LeaseTimes(24_000, 6_000, skew_ms=0)
_DAYS_AGO = (30, 27, 24, 21, 18, 15, 12, 2, 1, 0)


@dataclass
class World:
    """One table and everything around it. `snapshots` are the ids by their names in the picture above.

    `policy` is the firnline.yaml of every process made here; `run` is for the test that works on one run; `beside` are
    other catalogs that every process is configured with.
    """

    folder: Path
    ground: Ground
    clock: Clock
    writer: Writer
    actions: Actions
    judge: Judge
    snapshots: dict[str, int] = field(default_factory=dict)
    policy: str = ""
    run: str = ""
    side_objects: list[Pointers] = field(default_factory=list)

    @staticmethod
    def make(
        folder: Path,
        *,
        history: bool = True,
        name: str = "t",
        properties: dict[str, str] | None = None,
        ground: Ground | None = None,
    ) -> World:
        """Returns a new world under `folder`, or on other ground; without `history`, its table is empty."""
        folder.mkdir(parents=True, exist_ok=True)
        base, clock = ground or local_ground(folder), Clock()
        writer = Writer(f"{base.root}/{name}", base.pointers, name, clock, Ledger(), base.disk)
        world = World(folder, base, clock, writer, Actions(writer), Judge(writer.ledger, base))
        world._live_through(history, properties or {})
        return world

    @property
    def pointers(self) -> Pointers:
        return self.ground.pointers

    @property
    def catalog(self) -> SqlCatalog | RestCatalog:
        return self.ground.catalog

    @property
    def table(self) -> str:
        """The table's name as the command line takes it; follows a rename."""
        return f"{CATALOG}.{self.pointers.namespace}.{self.writer.name}"

    def process(self, fault: Fault | None = None, *, retrying: bool = False) -> Process:
        """Returns a firnline process of its own. One that died is never used again: make another."""
        return Process(
            self.catalog,
            fault,
            clock=self.clock,
            policy=self.policy,
            lease=LEASE,
            retrying=retrying,
            settings=self.ground.properties,
            side_objects=[SqlCatalog(each.catalog, each.uri) for each in self.side_objects],
            namespace=self.pointers.namespace,
        )

    def wait_for_lease(self) -> None:
        """Moves the clock to where the lease of a process that died is free."""
        self.clock.advance(LEASE.length_ms + LEASE.margin_ms + 1_000)

    def problems(self, without: frozenset[str] = frozenset()) -> list[str]:
        """Returns what any retained snapshot of any table lost; `without` names files that may be missing."""
        found = (each for known in (self.pointers, *self.side_objects) for each in self.judge.problems(known, without))
        return [*found, *self._lost_refs()]

    def check(self, without: frozenset[str] = frozenset()) -> None:
        """Raises AssertionError where a retained snapshot lost a file or a row, or a ref made meanwhile is gone."""
        found = self.problems(without)
        assert not found, "\n".join(found)

    def rows(self) -> dict[int, tuple[int, ...]]:
        """Returns the rows of every snapshot the table has now, as they were committed."""
        document = self.writer.document()
        return {
            each["snapshot-id"]: self.writer.ledger.truths[each["snapshot-id"]].rows for each in document["snapshots"]
        }

    def picture(self) -> Picture:
        """Returns what can be compared between two worlds of the same history: names and times are left out."""
        return picture_of(self.writer, self.process(), self.table)

    def files(self) -> set[str]:
        """Returns every file of the table's folders, without firnline's own records."""
        return {each for each in self.ground.disk.under(self.ground.root) if "/_firnline/" not in each}

    def runs(self) -> list[str]:
        """Returns the ids of the table's runs, in the order of planning."""
        return [str(carried.run.id) for carried in self.process().runs(self.table)]

    def pyiceberg_rows(self) -> dict[int, tuple[int, ...]]:
        """Returns the rows of every snapshot as PyIceberg reads them."""
        from pyiceberg.catalog import load_catalog

        theirs = load_catalog(CATALOG, **self.ground.properties)
        try:
            table = theirs.load_table(self.table.partition(".")[2])
            every = [each.snapshot_id for each in table.snapshots()]
            return {each: tuple(sorted(_column(table.scan(snapshot_id=each).to_arrow()))) for each in every}
        finally:
            theirs.close()

    def _lost_refs(self) -> Iterator[str]:
        if self.actions.refs:
            present = self.writer.document()["refs"]
            for name, snapshot in self.actions.refs.items():
                if present.get(name, {}).get("snapshot-id") != snapshot:
                    yield f"the ref {name}, made meanwhile, is gone"

    def _live_through(self, history: bool, properties: dict[str, str]) -> None:
        days = iter(_DAYS_AGO)

        def next_day() -> None:
            self.clock.ahead_ms = -next(days) * DAY_MS

        next_day()
        self.writer.create(properties)
        if history:
            for name, snapshot in _history(self.writer):
                self.snapshots[name] = snapshot
                next_day()
        self.clock.ahead_ms = 0


def _history(writer: Writer) -> Iterator[tuple[str, int]]:
    """Yields the snapshots of the picture, one after another. What only s3, s4, s5 or s7 hold are victims."""
    ledger = writer.ledger
    yield "s1", (s1 := writer.append(3))
    yield "s2", (s2 := writer.append(1))
    writer.set_ref("release", s2, "tag")
    yield "s3", (s3 := writer.overwrite(ledger.truths[s1].data[:1], 2))
    yield "s4", (s4 := writer.delete_rows(ledger.truths[s1].data[1], (2, 5)))
    writer.set_ref("aged", s4, "tag", max_ref_age_ms=DAY_MS)
    yield "s5", writer.append(1, on=None)
    writer.set_ref("audit", s2, "branch")
    yield "s6", writer.append(1, on="audit")
    brought = [path for path in ledger.truths[s3].data if path not in ledger.truths[s2].data]
    yield "s7", (s7 := writer.overwrite(brought[:1], 1))
    writer.statistics(s1)
    newest = [path for path in ledger.truths[s7].data if path not in ledger.truths[s4].data]
    yield "s8", writer.overwrite(newest, 1)
    yield "s9", (s9 := writer.append(1))
    writer.statistics(s9)


def _column(table: Any) -> list[int]:
    return list(table.column("x").to_pylist())
