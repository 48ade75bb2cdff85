"""The judge itself: its worlds are real and varied, and its plain reader agrees with both of Paimon's own.

FIRNLINE_PAIMON_WORLDS sets how many tables (4 unless told, 100 in the long lane).
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.paimon import layout
from harness.paimon.environment import PaimonError
from harness.paimon.expiry import Retention, expire, expire_changelogs
from harness.paimon.histories import WEIGHTS
from harness.paimon.java_table import JavaTable
from harness.paimon.layout import CHANGELOG, SNAPSHOT, TAG, PaimonRoot
from harness.paimon.outcomes import ExpiryOutcome, paimon_expire, paimon_orphans
from harness.paimon.plans import JavaPlans
from harness.paimon.reader import Needs, TableReader, walk
from harness.paimon.reviving import revive
from harness.paimon.rows import java_rows, python_files, python_rows
from harness.paimon.shapes import MAIN, Row, Shape
from harness.paimon.worlds import Paimon, PaimonWorld, grow

COUNT = int(os.environ.get("FIRNLINE_PAIMON_WORLDS", "100" if os.environ.get("FIRNLINE_FULL") else "4"))
FIRST = 66  # of this one Paimon's expiry loses files of the main branch, of the next one files of another
COVERING = [83, 39, 28, 12, 15, 49, 52]  # together these seeds reach every step and every kind of file
KINDS = {
    "index",
    "changelog of a snapshot",
    "changelog that outlived it",
    "beside data",
    "elsewhere",
    "own folder",
    "escaped",
}
HEADING = "count: what Paimon's own expiry does, on a copy"
Record = Callable[[str, object], None]


# ---------------------------------------------------------------- worlds


@pytest.fixture(scope="module", params=range(FIRST, FIRST + COUNT))
def world(
    both: Paimon, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PaimonWorld]:
    root = tmp_path_factory.mktemp("world")
    yield grow(both, request.param, root)
    shutil.rmtree(root)


@pytest.mark.sampled(2)
def test_the_plain_reader_finds_the_very_paths_that_java_plans(both: Paimon, world: PaimonWorld) -> None:
    plans = JavaPlans(both.java, JavaTable(both.java, world.folder))
    writes_changelogs = world.shape.options.get("changelog-producer", "none") != "none"
    for root, needs in world.reader().reachable().items():
        assert not needs.missing, root
        if root.kind != CHANGELOG:
            assert (root, needs.data) == (root, plans.data(root))
            assert (root, needs.index) == (root, plans.index(root))
        if root.kind != TAG:
            changes = plans.changes(root)
            assert changes <= needs.changelog | needs.data, root
            assert not writes_changelogs or changes == needs.changelog, root


def test_what_pypaimon_opens_is_what_the_plain_reader_finds(both: Paimon, world: PaimonWorld) -> None:
    opened = python_files(both.python, world.folder)
    reader = world.reader()
    # With deletion vectors a scan leaves out what was not compacted yet.
    whole = "deletion-vectors.enabled" not in world.shape.options
    for root, paths in opened.items():
        needs = reader.needs(root)
        assert paths <= needs.data | needs.index
        assert not whole or {path for path in needs.data if not path.endswith(".index")} <= paths


def test_java_and_pypaimon_read_the_same_rows(both: Paimon, world: PaimonWorld) -> None:
    by_python = python_rows(both.python, world.folder)
    by_java = java_rows(JavaTable(both.java, world.folder))
    assert by_java == {root: by_python[root] for root in by_java}
    assert len(by_java) >= len(layout.snapshots(world.folder, MAIN)) > 0


def test_paimons_own_search_finds_no_orphan_that_the_plain_reader_needs(both: Paimon, world: PaimonWorld) -> None:
    found = paimon_orphans(both.java, JavaTable(both.java, world.folder), older_than=2 * world.now)
    assert found <= world.reader().orphans()


@pytest.mark.parametrize("most", [1, 3])
def test_paimons_expiry_is_seen_and_undone(
    both: Paimon, world: PaimonWorld, most: int, record_property: Record
) -> None:
    before = contents(world.root)
    kept = 1000 if world.shape.decoupled else None
    seen = paimon_expire(both.java, world, Retention(1, most, changelog_least=kept, changelog_most=kept))
    assert contents(world.root) == before
    snapshots = layout.snapshots(world.folder, MAIN)
    assert {root.name for root in seen.expired if root.kind == SNAPSHOT} <= {str(each) for each in snapshots[:-most]}
    record_property(HEADING, counts(seen, len(layout.branches(world.folder)) > 1))


def counts(seen: ExpiryOutcome, branched: bool) -> dict[str, int]:
    return {
        "runs": 1,
        "snapshots expired": seen.said,
        "files deleted": len(seen.deleted),
        "runs that expire snapshots of a table with branches": int(branched and seen.said > 0),
        "runs that delete files which a branch still needs": int(any(root.branch != MAIN for root in seen.lost)),
        "runs that delete files which the main branch still needs": int(any(root.branch == MAIN for root in seen.lost)),
        "files deleted although needed": len(frozenset().union(*seen.lost.values())),
        "runs that leave garbage behind": int(bool(seen.left)),
    }


def contents(folder: Path) -> dict[str, bytes]:
    return {path: Path(path).read_bytes() for path in walk(folder)}


def test_few_seeds_reach_every_step_and_every_kind_of_file(both: Paimon, tmp_path: Path) -> None:
    done: Counter[str] = Counter()
    reached: set[str] = set()
    for seed in COVERING:
        made = grow(both, seed, tmp_path / str(seed))
        done += made.operations
        reached |= kinds(made.reader().reachable())
    assert WEIGHTS.keys() - done.keys() == set()
    assert KINDS - reached == set()


def kinds(needs: dict[PaimonRoot, Needs]) -> set[str]:
    data = {path for each in needs.values() for path in each.data}
    found = {
        "index": any(each.index for each in needs.values()),
        "changelog of a snapshot": any(each.changelog for root, each in needs.items() if root.kind == SNAPSHOT),
        "changelog that outlived it": any(each.changelog for root, each in needs.items() if root.kind == CHANGELOG),
        "beside data": any(path.endswith(".index") for path in data),
        "elsewhere": any("/elsewhere/" in path for path in data),
        "own folder": any("/t/rows/" in path for path in data),
        "escaped": any("%" in path for path in data),
    }
    return {name for name, there in found.items() if there}


def test_a_seed_gives_the_same_history_again(both: Paimon, tmp_path: Path) -> None:
    one, other = (grow(both, 28, tmp_path / name) for name in ("one", "other"))
    assert one.operations == other.operations
    assert ages(one) == ages(other)
    assert python_rows(both.python, one.folder) == python_rows(both.python, other.folder)


def ages(world: PaimonWorld) -> dict[PaimonRoot, int]:
    return {
        root: world.now - layout.document(root.path(world.folder))["timeMillis"] for root in layout.roots(world.folder)
    }


# ---------------------------------------------------------------- the judge can say no


def row(key: int, text: str) -> Row:
    return (key, text, "a/b", 1, 1, True, 0)


@pytest.fixture
def table(both: Paimon, tmp_path: Path) -> JavaTable:
    return make(both, tmp_path / "t", {"changelog-producer": "input"})


def make(both: Paimon, folder: Path, options: dict[str, str]) -> JavaTable:
    """A table with three snapshots, of which each replaces the only row."""
    made = JavaTable(both.java, folder)
    made.create(Shape("java", True, ("p",), {"bucket": "1", **options}))
    for number in range(3):
        made.write(MAIN, [row(1, f"v{number}")])
    return made


@pytest.mark.parametrize("kind", ["data-", "changelog-", "manifest-", "manifest-list-", "schema-"])
def test_a_file_that_is_gone_is_missed(table: JavaTable, kind: str) -> None:
    reader = TableReader(table.folder)
    root = PaimonRoot(MAIN, SNAPSHOT, "3")
    needed = sorted(path for path in reader.needs(root).files if os.path.basename(path).startswith(kind))
    Path(needed[0]).unlink()
    assert any(os.path.basename(needed[0]) in name for name in TableReader(table.folder).needs(root).missing)


def test_a_file_that_nothing_names_is_an_orphan(table: JavaTable) -> None:
    assert TableReader(table.folder).orphans() == set()
    table.abandon(MAIN, [row(2, "never committed")])
    names = {os.path.basename(path).partition("-")[0] for path in TableReader(table.folder).orphans()}
    assert names == {"data", "changelog"}


def test_rows_differ_where_a_snapshot_differs(both: Paimon, table: JavaTable) -> None:
    read = python_rows(both.python, table.folder)
    assert read[PaimonRoot(MAIN, SNAPSHOT, "1")] == (row(1, "v0"),)
    assert read[PaimonRoot(MAIN, SNAPSHOT, "3")] == (row(1, "v2"),)


# ---------------------------------------------------------------- what Paimon's own expiry loses


def test_paimons_expiry_makes_a_branch_unreadable(both: Paimon, table: JavaTable) -> None:
    table.tag(MAIN, "t", 1)
    table.create_branch("b", "t")
    table.drop_tag(MAIN, "t")
    table.compact(MAIN, full=True)
    branched = PaimonRoot("b", SNAPSHOT, "1")
    assert python_rows(both.python, table.folder, [branched])[branched] == (row(1, "v0"),)
    assert expire(both.java, table, Retention(most=1)) == 3
    assert TableReader(table.folder).needs(branched).missing
    with pytest.raises(PaimonError):
        python_rows(both.python, table.folder, [branched])


def test_paimons_expiry_makes_the_newest_snapshot_unreadable_after_an_old_one_became_it_again(
    both: Paimon, table: JavaTable
) -> None:
    table.truncate(MAIN)
    assert revive(both.java, table, MAIN, 3)
    newest = PaimonRoot(MAIN, SNAPSHOT, str(layout.snapshots(table.folder, MAIN)[-1]))
    assert python_rows(both.python, table.folder, [newest])[newest] == (row(1, "v2"),)
    assert expire(both.java, table, Retention(most=1)) > 0
    assert TableReader(table.folder).needs(newest).missing
    with pytest.raises(PaimonError):
        python_rows(both.python, table.folder, [newest])


def test_a_tag_keeps_its_rows_through_paimons_expiry_and_not_its_changes(both: Paimon, table: JavaTable) -> None:
    table.tag(MAIN, "t", 1)
    tagged = PaimonRoot(MAIN, TAG, "t")
    changed = TableReader(table.folder).needs(PaimonRoot(MAIN, SNAPSHOT, "1")).changelog
    assert expire(both.java, table, Retention(most=1)) == 2
    reader = TableReader(table.folder)
    assert not reader.needs(tagged).missing
    assert changed.isdisjoint(reader.disk)
    assert python_rows(both.python, table.folder, [tagged])[tagged] == (row(1, "v0"),)


@pytest.mark.parametrize("producer", ["none", "input"])
def test_a_changelog_that_outlives_its_snapshot_keeps_its_changes_until_it_expires(
    both: Paimon, tmp_path: Path, producer: str
) -> None:
    table = make(both, tmp_path / "t", {"changelog-producer": producer})
    lasting = Retention(most=1, changelog_least=1, changelog_most=1000)
    assert expire(both.java, table, lasting) == 2
    reader, root = TableReader(table.folder), PaimonRoot(MAIN, CHANGELOG, "1")
    changes = JavaPlans(both.java, table).changes(root)
    assert len(changes) == 1
    assert reader.needs(root).changelog == changes
    # What nothing needs can go: Paimon does not miss it when the changelogs expire.
    for path in reader.orphans():
        Path(path).unlink()
    assert expire_changelogs(both.java, table, Retention(most=1, changelog_least=1, changelog_most=1)) == 1
    after = TableReader(table.folder)
    assert root not in after.reachable()
    assert after.orphans() == set()
