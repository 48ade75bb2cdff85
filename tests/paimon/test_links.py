"""A table that is reached through a symbolic link is one table, and a link inside its metadata is not passed over."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from firnline.errors import RefusedForSafety, UnsupportedFormat
from firnline.model.holds import Hold
from firnline.ops.marks.holds import add_hold
from harness.paimon import layout
from harness.paimon.java_table import JavaTable
from harness.paimon.shapes import MAIN
from harness.paimon.worlds import Paimon

from .aged import MEANT, age, disk
from .small import EVERYTHING_OLD, Copy

LATER = {"grace": "1m", "blast_radius": 1.0}


@pytest.fixture
def link(copy: Copy) -> Iterator[Copy]:
    """The same table by another name, with the same clock."""
    found = copy.folder.with_name(f"{copy.folder.name}-link")
    found.symlink_to(copy.folder)
    yield Copy(found, copy.clock)
    found.unlink()


def files_of(copy: Copy, snapshot: int) -> set[str]:
    """Returns what a tag of a snapshot of the main branch would need beside the snapshot's own file."""
    root = layout.PaimonRoot(MAIN, layout.SNAPSHOT, str(snapshot))
    return copy.reader().needs(root, as_tag=True).files - {str(root.path(copy.folder / "t"))}


def hold_third(copy: Copy) -> None:
    add_hold(copy.process().places.table_context(copy.table), Hold("late", "somebody", "a test", "3"))


def test_a_hold_counts_for_a_run_that_is_carried_on_through_a_link(copy: Copy, link: Copy) -> None:
    held = files_of(copy, 3)
    copy.expire(grace="1m")
    hold_third(copy)
    copy.clock.advance(61_000)
    link.process().resume(link.table)
    assert {path for path in held if not Path(path).exists()} == set()
    assert [each.state for each in copy.process().runs(copy.table)] == ["done"]


def test_a_tag_counts_for_a_run_that_is_carried_on_through_a_link(both: Paimon, copy: Copy, link: Copy) -> None:
    kept = Path(copy.table, "snapshot/snapshot-3").read_bytes()
    needed = files_of(copy, 3)
    copy.expire(grace="1m")
    Path(copy.table, "tag/tag-late").write_bytes(kept)  # one that was on its way while the snapshot went
    copy.clock.advance(61_000)
    link.process().resume(link.table)
    assert {path for path in needed if not Path(path).exists()} == set()
    table = JavaTable(both.java, copy.folder / "t")
    assert table.rows.read(table.open(MAIN, {"scan.tag-name": "late"}))


def test_a_run_that_is_carried_on_through_a_link_removes_what_it_planned(copy: Copy, link: Copy) -> None:
    """It is the same table: nothing lies outside its folders."""
    twin = Copy.of(copy.folder, "twin")
    twin.expire()
    copy.expire(grace="1m")
    copy.clock.advance(61_000)
    link.process().resume(link.table)
    assert copy.picture().keys() == twin.picture().keys()
    twin.end()


def test_a_run_that_was_planned_through_a_link_is_carried_on_without_it(copy: Copy, link: Copy) -> None:
    held = files_of(copy, 3)
    link.expire(grace="1m")
    hold_third(link)
    copy.clock.advance(61_000)
    copy.process().resume(copy.table)
    assert {path for path in held if not Path(path).exists()} == set()
    assert not copy.missing()


def test_a_search_through_a_link_spares_what_the_table_needs(copy: Copy, link: Copy) -> None:
    held = files_of(copy, 3)
    copy.expire(grace="1m")
    hold_third(copy)
    copy.clock.advance(61_000)
    copy.process().resume(copy.table)
    age(disk(copy.folder))
    link.process().orphans(link.table, **MEANT)
    assert {path for path in held if not Path(path).exists()} == set()
    assert not copy.missing()


# ---------------------------------------------------------------- links inside


def moved_behind_a_link(copy: Copy, below: str) -> Path:
    place, target = Path(copy.table, below), copy.folder / "elsewhere"
    shutil.move(place, target)
    place.symlink_to(target)
    return place


@pytest.mark.parametrize("below", ["branch/branch-side", "branch/branch-side/snapshot", "branch/branch-side/tag"])
def test_a_branch_that_is_a_link_is_refused_by_name(both: Paimon, copy: Copy, below: str) -> None:
    """Java reads it: its snapshots need files, and no listing shows them."""
    place = moved_behind_a_link(copy, below)
    table = JavaTable(both.java, copy.folder / "t")
    rows = sorted(table.rows.read(table.open("side")))
    before = copy.picture()
    with pytest.raises(UnsupportedFormat, match=str(place)) as refused:
        copy.expire()
    assert "link" in refused.value.message
    assert copy.picture() == before
    assert sorted(table.rows.read(table.open("side"))) == rows


def test_a_folder_of_tags_that_is_a_link_is_refused_by_name(copy: Copy) -> None:
    """Paimon makes folders of a name with slashes."""
    (copy.folder / "elsewhere").mkdir()
    shutil.copyfile(Path(copy.table, "tag/tag-two"), copy.folder / "elsewhere/three")
    place = Path(copy.table, "tag/tag-of")
    place.symlink_to(copy.folder / "elsewhere")
    with pytest.raises(UnsupportedFormat, match=str(place)):
        copy.expire()


@pytest.mark.parametrize("below", ["snapshot", "tag", "branch"])
def test_a_metadata_folder_that_is_a_link_itself_is_refused_by_name(copy: Copy, below: str) -> None:
    """It may be another table's folder, and hold what that one needs."""
    place = moved_behind_a_link(copy, below)
    before = copy.picture()
    with pytest.raises(UnsupportedFormat, match=str(place)):
        copy.expire()
    assert copy.picture() == before


@pytest.fixture
def linked(copy: Copy) -> Iterator[Copy]:
    """What `cp -rs` makes of the table, but for its metadata: folders of its own, with a link to each file."""

    def one_file(one: str, other: str) -> None:
        if Path(one).parent.name in ("snapshot", "schema", "tag"):
            shutil.copyfile(one, other)
        else:
            Path(other).symlink_to(one)

    found = Copy(copy.folder.with_name(f"{copy.folder.name}-links"), copy.clock)
    shutil.copytree(copy.folder, found.folder, copy_function=one_file)
    yield found
    found.end()


def shared_with(linked: Copy) -> str:
    return f"shared-with: ['{linked.table}']"


def test_a_copy_of_links_that_is_shared_with_keeps_all_files(copy: Copy, linked: Copy) -> None:
    asked = {**EVERYTHING_OLD, "grace": "0s", "sole_writer": True}
    copy.process(policy=shared_with(linked)).expire(copy.table, **asked)
    assert layout.snapshots(copy.folder / "t", MAIN) == [6, 7]
    assert linked.missing() == {}


def test_a_table_of_links_loses_none_of_the_files_that_they_lead_to(copy: Copy, linked: Copy) -> None:
    before = copy.picture()
    linked.expire()
    assert copy.picture() == before
    assert linked.missing() == {}


def test_a_snapshot_that_is_a_link_into_another_table_is_refused_by_name(copy: Copy, linked: Copy) -> None:
    """The other table's commit would take the file of the snapshot itself."""
    place = Path(linked.table, "snapshot/snapshot-1")
    place.unlink()
    place.symlink_to(Path(copy.table, "snapshot/snapshot-1"))
    before = copy.picture()
    with pytest.raises(RefusedForSafety, match=str(place)):
        copy.process(policy=shared_with(linked)).expire(copy.table, **EVERYTHING_OLD)
    with pytest.raises(UnsupportedFormat, match=str(place)):
        linked.expire()
    assert copy.picture() == before
