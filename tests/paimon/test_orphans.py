"""Orphans of tables that real Paimon wrote: exactly what no manifest names goes, whatever happens meanwhile.

FIRNLINE_PAIMON_SEARCHES sets how many tables (6 unless told, 300 in the long lane).
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from firnline.errors import FirnlineError
from firnline.model.locations import parse_location
from firnline.model.times import DAY_MS
from firnline.ports.listings import ObjectClass
from firnline.testing.dated import Clock
from firnline.testing.faults import CHANGES, Acting, CountingFault, Died, Dying, Fault
from firnline.testing.folder_process import FolderProcess
from harness.paimon.worlds import Paimon, PaimonWorld, grow

from .aged import MEANT, age, bystanders, disk, strays
from .small import Copy
from .worlds import Seen, grown, is_sound, table

FULL = bool(os.environ.get("FIRNLINE_FULL"))
COUNT = int(os.environ.get("FIRNLINE_PAIMON_SEARCHES", "300" if FULL else "6"))
FIRST = 500


@pytest.fixture(scope="module", params=range(FIRST, FIRST + COUNT))
def world(both: Paimon, request: pytest.FixtureRequest) -> Iterator[PaimonWorld]:
    with grown(both, request.param) as made:
        yield made


def everything(world: PaimonWorld) -> set[str]:
    return disk(world.folder, world.root / "elsewhere")


@pytest.mark.sampled(1)
def test_exactly_what_nothing_names_goes(both: Paimon, world: PaimonWorld) -> None:
    rng = random.Random(world.seed)
    there = everything(world)
    old = {path for path in sorted(there) if rng.random() < 0.8}
    age(old)
    before, garbage = Seen.of(both, world), world.reader().unnamed()
    plan, ended = FolderProcess().orphans(table(world), include_outside=True, **MEANT)
    assert there - everything(world) == garbage & old
    assert plan.classes[ObjectClass.YOUNG].files == len(garbage - old)
    assert plan.classes[ObjectClass.NEAR_MISS].files == 0
    assert ended is None or ended.state == "done"
    after = Seen.of(both, world)
    assert (after.needs, after.missing, after.rows) == (before.needs, before.missing, before.rows)
    assert is_sound(world, after)


def test_worlds_have_orphans(both: Paimon, quick_folder: Path) -> None:
    """So that the test above can fail."""
    world = grow(both, FIRST, quick_folder, length=25)
    found = {os.path.basename(path).partition("-")[0] for path in world.reader().unnamed()}
    assert found, "this world has nothing to find: choose another seed"


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@pytest.mark.skipif(not FULL, reason="the long lane: a session's walks of twenty worlds")
def test_spark_finds_the_same(both: Paimon, quick_folder: Path) -> None:
    for seed in range(FIRST, FIRST + 20):
        world = grow(both, seed, quick_folder / str(seed), length=25)
        found = []
        for engine in ("local", "spark"):
            out = quick_folder / f"{seed}-{engine}.parquet"
            process = FolderProcess(clock=Clock(10 * DAY_MS))  # executors know nothing of files that were dated
            process.places.engines.named = engine
            plan, _ = process.orphans(table(world), include_outside=True, dry_run=True, files=out)
            rows = sorted(map(str, pq.read_table(out).to_pylist()))
            found.append((rows, plan.classes, plan.units_opened))
        assert found[0] == found[1], seed
        assert {parse_location(row["path"]).path for row in pq.read_table(out).to_pylist()} == world.reader().unnamed()


def test_only_what_writers_name_so_goes(copy: Copy) -> None:
    """Control files, other names, other depths, other kinds: none of these is ever garbage."""
    table_folder = Path(copy.table)
    age(disk(table_folder))
    gone, left = strays(copy), bystanders(copy)
    there, unnamed = disk(table_folder), copy.reader().unnamed()
    assert gone <= unnamed
    plan, _ = copy.process().orphans(copy.table, **MEANT)
    assert there - disk(table_folder) == unnamed - left
    assert all(Path(path).exists() for path in left)
    assert {kind.value for kind in plan.victims.by_kind} == {
        "data", "changelog", "manifest", "manifest-list", "index-manifest", "index", "statistics", "unfinished"
    }  # fmt: skip
    assert copy.process().check(copy.table).sound


# ---- cut, and acted upon


def search(copy: Copy, fault: Fault | None = None) -> None:
    copy.process(fault).orphans(copy.table, **MEANT)


def littered(made: Path, number: object) -> tuple[Copy, set[str]]:
    """Returns a copy with strays in it, which also removes folders that are empty."""
    copy = Copy.of(made, number)
    ask_for_clean_folders(copy)
    age(disk(Path(copy.table)))
    return copy, strays(copy)


def ask_for_clean_folders(copy: Copy, option: str = "snapshot.clean-empty-directories") -> None:
    for schema in Path(copy.table).glob("**/schema/schema-*"):
        text = schema.read_text()
        assert '"options" : {' in text
        schema.write_text(text.replace('"options" : {', f'"options" : {{ "{option}" : "true",', 1))


@pytest.mark.full
def test_a_search_is_cut_at_every_write(made: Path) -> None:
    copy, _ = littered(made, "uncut")
    counting = CountingFault()
    search(copy, counting)
    picture = copy.picture()
    copy.end()
    effects = [each for each in counting.trace if each[0] in CHANGES]
    assert any(key.endswith("/p=gone") for _, key in effects), "no folder was removed"
    for at, (verb, _) in enumerate(effects, 1):
        if not FULL and verb != "delete" and at % 12:
            continue
        for when in ("before", "after") if FULL else ("before",):  # after one write is before the next
            copy, gone = littered(made, at)
            fault = Dying(at, when=when)
            with suppress(Died, FirnlineError):
                search(copy, fault)
            assert fault.dead
            assert not copy.missing()
            copy.wait_for_lease()
            copy.process().resume(copy.table)
            search(copy)
            assert copy.picture() == picture
            assert not any(Path(path).exists() for path in gone)
            assert not (Path(copy.table) / "p=gone").exists(), (at, when)
            copy.end()


@dataclass
class Watching(Acting):
    """Acts as `Acting` does. `sighted` are the names of what was deleted after the table was looked at again, which
    begins with listing its snapshots.
    """

    sighted: set[str] = field(default_factory=set, init=False)
    looks: int = field(default=0, init=False)

    def _watch(self, verb: str, key: str) -> None:
        self.looks += self.before is not None and verb == "list" and key.endswith("/snapshot")
        if verb == "delete" and self.looks:
            self.sighted.add(os.path.basename(key))


@pytest.mark.full
def test_a_slow_writer_commits_in_the_middle(made: Path) -> None:
    """Files that were written long ago and are committed only now are spared: all but those that were deleted before
    the table was looked at again.
    """
    copy, newest, counting = late_commit(made, "counted"), newest_snapshot(made), CountingFault()
    search(copy, counting)
    assert any(verb == "delete" and "/data-" in key for verb, key in counting.trace), (
        "nothing of it looked like garbage"
    )
    copy.end()
    spared = 0
    for at in range(2, counting.requests, 1 if FULL else max(1, counting.requests // 12)):
        copy = late_commit(made, at)
        acting = Watching(at, committing(made, copy, newest))
        with suppress(FirnlineError):
            search(copy, acting)
        lost = {name for missing in copy.missing().values() for name in missing}
        assert not lost & acting.sighted, acting.before
        spared += not lost
        copy.end()
    assert spared > 3


def newest_snapshot(made: Path) -> str:
    numbers = (int(each.name.removeprefix("snapshot-")) for each in (made / "t/snapshot").glob("snapshot-*"))
    return f"snapshot/snapshot-{max(numbers)}"


def late_commit(made: Path, number: object) -> Copy:
    """Returns a copy in which the newest snapshot is not committed yet; its files are old."""
    copy = Copy.of(made, f"late-{number}")
    (Path(copy.table) / newest_snapshot(made)).unlink()
    (Path(copy.table) / "snapshot/LATEST").unlink()
    age(disk(Path(copy.table)))
    return copy


def committing(made: Path, copy: Copy, snapshot: str) -> Callable[[], object]:
    return lambda: shutil.copyfile(made / "t" / snapshot, Path(copy.table) / snapshot)
