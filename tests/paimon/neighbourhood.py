"""What goes on around a table that firnline looks after: writers, jobs that were started long ago, options that make
one branch be read with another, Iceberg metadata beside Paimon's own, folders that get another name.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from py4j.protocol import Py4JJavaError

from harness.paimon import layout
from harness.paimon.histories import WEIGHTS, TableSteps, is_refusal
from harness.paimon.shapes import MAIN, Row
from harness.paimon.worlds import tables_of

from .contents import contents_of
from .scene import Scene
from .test_mirrors import CODEC, STORAGE

EAGER = {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "2", "snapshot.time-retained": "1 ms"}
VIEW = {STORAGE: "table-location", CODEC: "deflate"}
FALLBACKS = ("scan.fallback-branch", "scan.primary-branch")
STEPS = {
    "history": 6.0,
    "start_job": 2,
    "job_commits": 3,
    "read_with_a_branch": 3,
    "read_alone": 0.5,
    "mirror": 1,
    "mirror_by_a_job": 1,
    "rename": 0.7,
    "tag_for_hours": 1.5,
    "branch_off": 1,
}
# What Paimon does by itself where it would lose files of others is left out, see `TableSteps`.


@dataclass
class Job:
    """A writer that goes on with the options that it found when it was started."""

    opened: Any
    held: bool
    """Whether the whole table was held by then: such a job removes nothing."""


@dataclass
class Neighbourhood:
    """Everybody but firnline."""

    scene: Scene
    jobs: list[Job] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._numbers = count(5_000)
        self.revived = self.scene.world.operations["revive"]

    @property
    def rng(self) -> random.Random:
        return self.scene.rng

    def step(self) -> None:
        """Takes one step that there is something to do with, and remembers what came of it."""
        weights = self.scene.weighed(STEPS)
        self.take(self.rng.choices(list(weights), list(weights.values()))[0])

    def take(self, name: str) -> None:
        with self.scene.somewhere(), self._if_paimon_can(name):
            self.scene.counts[f"around: {name}"] += bool(getattr(self, name)())
        self.scene.learn()

    @contextmanager
    def _if_paimon_can(self, name: str) -> Iterator[None]:
        """Counts what Paimon refuses, and where it fails at Iceberg metadata: of partitions that are null, say."""
        try:
            yield
        except Py4JJavaError as error:
            mirroring = "org.apache.paimon.iceberg" in str(error)
            if not mirroring and not is_refusal(error):
                raise
            why = "Paimon fails at its Iceberg metadata" if mirroring else "Paimon refuses"
            self.scene.counts[f"around: {name} ({why})"] += 1

    def fragile(self) -> bool:
        """Tells whether Paimon's own expiry would lose files: it protects no branch, and no file added again."""
        return len(layout.branches(self.scene.folder)) > 1 or self.revived > 0

    # ---- writers

    def history(self) -> bool:
        """One step of a random history, as those that made the table."""
        scene = self.scene
        tables = tables_of(scene.both, scene.world.writer, scene.folder)
        going_on = TableSteps(scene.both.java, tables, scene.world.shape, self.rng, next(self._numbers) * 10)
        going_on.done["revive"] = self.revived
        name = self.rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        taken = going_on.take(name)
        self.revived = going_on.done["revive"]
        return taken

    def rows(self) -> list[Row]:
        return [(self.rng.randint(0, 7), f"job {next(self._numbers)}", "a", 1, 1, True, 0)]

    def rewrite(self) -> bool:
        """Other rows in the place of those of one partition, in files of their own."""
        self.scene.java.write(MAIN, self.rows(), {})
        self.scene.java.compact(MAIN, True)
        return True

    def start_job(self) -> bool:
        """A job that expires as it commits, by the table's own options."""
        table = self.scene.java
        if not self.scene.table_held and not self.fragile():
            for name, value in EAGER.items():
                table.set_option(name, value)
        self.jobs.append(Job(table.open(), self.scene.table_held))
        return True

    def job_commits(self) -> bool:
        """Expires with the options from before. Not where it would lose files of branches: that is known of it."""
        if not self.jobs or self.fragile():
            return False
        job, before = self.rng.choice(self.jobs), contents_of(self.scene.folder)
        self.scene.java.write_through(job.opened, self.rows())
        left = contents_of(self.scene.folder)
        assert not job.held or before.keys() <= left.keys(), "the whole table was held before this job began"
        self.scene.counts["around: snapshots and tags that jobs expired"] += len(before.keys() - left.keys())
        ours = {root for root in before if root.name.startswith(("firnline-", "mine-"))}
        assert ours <= left.keys(), "a tag of firnline's went before its time"
        return True

    # ---- options

    def read_with_a_branch(self) -> bool:
        branches = layout.branches(self.scene.folder)[1:]
        if branches:
            self.scene.java.set_option(self.rng.choice(FALLBACKS), self.rng.choice(branches))
        return bool(branches)

    def read_alone(self) -> bool:
        said = layout.options(self.scene.folder, MAIN)
        for name in (each for each in FALLBACKS if each in said):
            self.scene.java.remove_option(name)
        return any(each in said for each in FALLBACKS)

    def mirror(self) -> bool:
        """From now on every commit keeps Iceberg metadata too, or none does any more."""
        if STORAGE in layout.options(self.scene.folder, MAIN):
            self.scene.java.remove_option(STORAGE)
        else:
            for name, value in VIEW.items():
                self.scene.java.set_option(name, value)
        self.scene.java.write(MAIN, self.rows())
        self.scene.java.compact(MAIN, True)
        return True

    def mirror_for_a_catalog(self) -> bool:
        """From now on every commit keeps Iceberg metadata where a catalog of the warehouse looks for it."""
        for name, value in {**VIEW, STORAGE: "hadoop-catalog"}.items():
            self.scene.java.set_option(name, value)
        return True

    def mirror_by_a_job(self) -> bool:
        """Only this job was told to; the table's options say nothing of it."""
        opened = self.scene.java.open(MAIN, {"write-only": "true", **VIEW})
        self.scene.java.write_through(opened, self.rows())
        return True

    # ---- names and times

    def rename(self) -> bool:
        """Jobs that ran on it fail, and are started again."""
        self.jobs.clear()
        self.scene.rename()
        return True

    def tag_for_hours(self) -> bool:
        found = layout.snapshots(self.scene.folder, MAIN)
        self.scene.java.tag(MAIN, f"hours{next(self._numbers)}", self.rng.choice(found), "6h")
        return True

    def branch_off(self) -> bool:
        """A branch from a tag that may go again, with rows of its own."""
        table, number = self.scene.java, next(self._numbers)
        table.tag(MAIN, f"off{number}", self.rng.choice(layout.snapshots(self.scene.folder, MAIN)))
        table.create_branch(f"side{number}", f"off{number}")
        for _ in range(self.rng.randint(0, 2)):
            table.write(f"side{number}", self.rows())
        if self.rng.random() < 0.5:
            table.drop_tag(MAIN, f"off{number}")
        return True

    def make_again(self, name: str) -> None:
        """Drops a branch and makes another of that name: from a tag, or empty and written to."""
        table, tags = self.scene.java, layout.tags(self.scene.folder, MAIN)
        there = set(layout.snapshots(self.scene.folder, MAIN))
        documents = {
            tag: layout.document(layout.PaimonRoot(MAIN, layout.TAG, tag).path(self.scene.folder)) for tag in tags
        }
        live = [tag for tag, said in documents.items() if said["id"] in there]
        with self._if_paimon_can("make_again"):
            table.drop_branch(name)
            table.create_branch(name, self.rng.choice(live) if live else None)
            table.write(name, self.rows())
            self.scene.counts["around: make_again"] += 1

    def write(self) -> None:
        with self._if_paimon_can("write"):
            self.scene.java.write(MAIN, self.rows())
