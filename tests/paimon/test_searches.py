"""What stops a search of a Paimon table, or keeps a file from it; and what goes beside files: folders and notes."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from firnline.errors import CollectionForbidden, RefusedForSafety, UnreadableMetadata
from firnline.formats.paimon.table import PaimonFormat
from firnline.local.engine import LocalEngine
from firnline.model.files import File, FileKind, Root
from firnline.model.holds import Hold
from firnline.model.locations import join
from firnline.ops.marks.holds import add_hold
from firnline.ops.orphans.neighbours import EachItsOwn
from firnline.ops.reachability.since_plan import ReachableSincePlan
from firnline.stores.objects import ObjectStores
from firnline.stores.removers import LocalFolders
from harness.crowds import Crowd
from harness.paimon.java_table import JavaTable
from harness.paimon.reader import TableReader
from harness.paimon.shapes import MAIN, Shape
from harness.paimon.worlds import Paimon

from .aged import MEANT, a_name, age, disk, strays
from .small import Copy, row
from .test_orphans import ask_for_clean_folders, littered

NOTES = "_firnline/commits"


@pytest.fixture
def aged(copy: Copy) -> Copy:
    """A copy whose files are ten days old."""
    age(disk(Path(copy.table)))
    return copy


def search(copy: Copy, **asked: object) -> None:
    copy.process().orphans(copy.table, **{**MEANT, **asked})


# ---- doubts


def test_a_needed_file_in_another_folder_than_derived_stops_the_search(aged: Copy) -> None:
    """A writer may make another folder of a partition's value than we do: the name alone tells that it is needed."""
    search(aged)  # Paimon left a changelog of an overwrite
    bucket = next(Path(aged.table).glob("p=a*/bucket-0"))
    shutil.move(bucket.parent, bucket.parent.with_name("p=a:b"))
    before = disk(Path(aged.table))
    with pytest.raises(RefusedForSafety, match="folder"):
        search(aged)
    search(aged, keep_near_misses=True)
    assert disk(Path(aged.table)) == before


def test_a_file_that_was_committed_since_is_spared_by_the_purge(aged: Copy) -> None:
    gone = strays(aged)
    plan, _ = aged.process().orphans(aged.table, **{**MEANT, "grace": "1m"})
    table = Path(aged.table)
    newest = max((table / "snapshot").glob("snapshot-*"), key=lambda each: int(each.name.removeprefix("snapshot-")))
    number = int(newest.name.removeprefix("snapshot-")) + 1
    (lists,) = (each for each in gone if "/manifest-list-" in each)
    shutil.copyfile(table / "manifest" / _field(newest, "deltaManifestList"), lists)
    text = newest.read_text().replace(_field(newest, "deltaManifestList"), os.path.basename(lists))
    newest.with_name(f"snapshot-{number}").write_text(text.replace(f'"id" : {number - 1}', f'"id" : {number}'))
    aged.clock.advance(60_001)
    aged.process().resume(aged.table)
    assert {path for path in gone if Path(path).exists()} == {lists}
    assert plan.run is not None
    assert aged.process().check(aged.table).sound


def _field(snapshot: Path, name: str) -> str:
    said: str = json.loads(snapshot.read_text())[name]
    return said


@pytest.mark.parametrize("by_name", [True, False])
def test_a_name_alone_spares_a_file_where_names_are_unique(aged: Copy, by_name: bool) -> None:
    table_format, name = PaimonFormat(ObjectStores({})), a_name("data-", ".parquet")
    since_plan = ReachableSincePlan(LocalEngine)
    root = Root(File(FileKind.DATA, f"{aged.table}/p=a/bucket-0/{name}"), True)
    since_plan.add([root], table_format.expand, by_name=by_name)
    here, there = f"file://{aged.table}/p=a/bucket-0/{name}", f"{aged.table}/p=b/bucket-0/{name}"
    assert since_plan.spared([here, there]) == ({here, there} if by_name else {here})


@pytest.mark.parametrize("damage", ["torn", "missing"])
@pytest.mark.parametrize("kind", ["manifest-list-*", "manifest-[!l]*"])
def test_what_cannot_be_read_stops_the_search(aged: Copy, kind: str, damage: str) -> None:
    """Of the branch, which the main one does not need."""
    gone = strays(aged)
    side = aged.reader()
    roots = {root: needs for root, needs in side.reachable().items() if root.branch == "side"}
    others = {path for root, needs in side.reachable().items() if root.branch != "side" for path in needs.files}
    of_side = {path for needs in roots.values() for path in needs.metadata} - others
    chosen = Path(next(path for path in sorted(of_side) if Path(path).match(f"manifest/{kind}")))
    if damage == "torn":
        chosen.write_bytes(chosen.read_bytes()[:-20])
    else:
        chosen.unlink()
    with pytest.raises(UnreadableMetadata, match=chosen.name):
        search(aged)
    assert all(Path(path).exists() for path in gone)


def test_a_list_that_only_some_can_do_without_must_be_there(aged: Copy) -> None:
    """A changelog's list may be gone; the same list as that of a snapshot may not, whoever is asked first."""
    table_format = PaimonFormat(ObjectStores({}))
    gone = join(aged.table, "manifest", a_name("manifest-list-"))
    kinds = (FileKind.CHANGES_LIST, FileKind.MANIFEST_LIST)
    changes, contents = (Root(File(kind, gone, opens=True), True) for kind in kinds)
    plain = EachItsOwn({}, {}, table_format.expand)
    ReachableSincePlan(LocalEngine).add([changes], plain)
    for both_ways in ([changes, contents], [contents, changes]):
        with pytest.raises(UnreadableMetadata, match=gone):
            ReachableSincePlan(LocalEngine).add(both_ways, plain)


def test_what_may_be_undone_is_needed(aged: Copy) -> None:
    search(aged)  # Paimon left a changelog of an overwrite
    before = aged.picture()
    ended = aged.expire(grace="72h")
    age(disk(Path(aged.table)))
    gone = strays(aged)
    search(aged)
    assert not any(Path(path).exists() for path in gone)
    aged.process().undo(str(ended.run.id))
    assert aged.picture() == before
    assert not aged.missing()


def test_a_hold_on_the_table_forbids_it(aged: Copy) -> None:
    gone = strays(aged)
    add_hold(aged.process().places.table_context(aged.table), Hold("audit", "somebody", "a test", None, None))
    with pytest.raises(CollectionForbidden):
        search(aged)
    assert all(Path(path).exists() for path in gone)


def test_another_table_inside_must_be_named(both: Paimon, aged: Copy) -> None:
    inner = Path(aged.table) / "p=x" / "bucket-0" / "inner"
    table = JavaTable(both.java, inner)
    table.create(Shape("java", False, (), {"bucket": "-1"}))
    table.write(MAIN, [row(1, "one")])
    orphan = inner / "bucket-0" / a_name("data-", ".parquet")
    orphan.write_bytes(b"nobody's")
    age(disk(Path(aged.table)))
    before = disk(inner)
    with pytest.raises(RefusedForSafety, match="no configured catalog"):
        search(aged)
    gone = strays(aged)
    search(aged, also=(str(inner),))
    assert disk(inner) == before, "its garbage is for its own search"
    assert not any(Path(path).exists() for path in gone)
    Copy(inner.parent).process().orphans(str(inner), **MEANT)
    assert before - disk(inner) == {str(orphan)}


def test_a_table_that_no_catalog_has_is_shown_once_with_its_branches(copy: Copy) -> None:
    (found,) = copy.process().dropped(str(copy.folder))
    assert found.folder == copy.table
    assert found.problem is not None
    assert "whose tables are in no catalog" in found.problem


# ---- beside Iceberg


class Placed(Copy):
    """A table in a folder of any name."""

    @property
    def table(self) -> str:
        return str(self.folder)

    def reader(self) -> TableReader:
        return TableReader(self.folder)


def test_beside_iceberg_tables_each_is_read_in_its_own_way(made: Path, tmp_path: Path) -> None:
    crowd = Crowd.make(tmp_path)
    crowd.table("t")
    copy = Copy.of(made, "beside")
    place = tmp_path / "lake" / "paimon"
    shutil.move(copy.table, place)
    age(disk(place))
    moved = Placed(place)
    gone = strays(moved)
    stray = crowd.stray("t/data/one.parquet")
    with pytest.raises(RefusedForSafety, match="which no configured catalog has") as refused:
        crowd.process().orphans(crowd.lake, grace="0s", consent=lambda plan: True)
    assert "with also" in (refused.value.hint or "")
    crowd.process().orphans(str(place), **MEANT)
    assert not any(Path(path).exists() for path in gone)
    assert stray in crowd.files()
    gone = strays(moved)
    crowd.process().orphans(crowd.lake, also=(str(place),), **MEANT)
    assert not any(Path(path).exists() for path in gone)
    assert stray not in crowd.files()
    crowd.check()
    assert not moved.missing()
    copy.end()


# ---- folders


@pytest.mark.parametrize("option", ["snapshot.clean-empty-directories", "snapshot.expire.clean-empty-directories"])
def test_empty_folders_go_where_the_table_asks_for_it(aged: Copy, option: str) -> None:
    ask_for_clean_folders(aged, option)
    age(disk(Path(aged.table)))
    strays(aged)
    empty = Path(aged.table) / "p=empty" / "bucket-0"
    empty.mkdir(parents=True)
    kept = Path(aged.table) / "p=gone" / "bucket-9"
    kept.mkdir(parents=True)
    search(aged)
    assert not (Path(aged.table) / "p=gone" / "bucket-3").exists()
    assert kept.exists(), "nothing of this run lay there"
    assert empty.exists(), "nothing of this run lay there"
    assert (Path(aged.table) / "manifest").exists()


def test_empty_folders_stay_where_it_does_not(aged: Copy) -> None:
    strays(aged)
    search(aged)
    assert (Path(aged.table) / "p=gone" / "bucket-3").exists()


def test_an_expiry_removes_folders_too(both: Paimon, aged: Copy) -> None:
    """A partition that was emptied, once nothing needs what was in it."""
    ask_for_clean_folders(aged)
    table = JavaTable(both.java, Path(aged.table))
    table.write(MAIN, [row(7, "seven", "brief")])
    table.truncate(MAIN)
    assert (Path(aged.table) / "p=brief" / "bucket-0").exists()
    aged.expire(retain_last=1)
    assert not (Path(aged.table) / "p=brief").exists()
    assert not aged.missing()


def test_a_folder_with_anything_in_it_stays(tmp_path: Path) -> None:
    full, empty, link = tmp_path / "full", tmp_path / "empty", tmp_path / "link"
    (full / "below").mkdir(parents=True)
    empty.mkdir()
    link.symlink_to(full / "below")
    folders = LocalFolders()
    assert not folders.remove_empty(str(full))
    assert not folders.remove_empty(str(link))
    assert not folders.remove_empty(str(tmp_path / "absent"))
    assert not folders.remove_empty("s3://bucket/empty")
    assert folders.remove_empty(f"file://{empty}")
    assert not empty.exists()
    assert (full / "below").exists()


# ---- notes


def notes(copy: Copy) -> set[str]:
    folder = Path(copy.table) / NOTES
    return {each.name for each in folder.iterdir()} if folder.exists() else set()


def test_notes_of_commits_go_when_nobody_can_ask_for_them(copy: Copy) -> None:
    copy.expire(retain_last=5)
    done = notes(copy)
    assert {name.partition(".")[2] for name in done} == {"begun", "done"}
    copy.expire(retain_last=4, grace="72h")
    waiting = notes(copy) - done
    assert done < notes(copy), "they are young"
    lonely = Path(copy.table) / NOTES / "11111111-1111-1111-1111-111111111111.begun"
    lonely.write_text("{}")
    age(str(each) for each in (Path(copy.table) / NOTES).iterdir())
    copy.expire(retain_last=2, grace="72h")
    left = notes(copy)
    assert not left & {*done, lonely.name}
    assert waiting < left, "their run can still be undone"


def test_a_run_goes_on_without_notes_that_were_cleared(made: Path) -> None:
    """An undo after a day in which another run cleared what was old."""
    copy, _ = littered(made, "notes")
    first = copy.expire(retain_last=5, grace="72h")
    age(str(each) for each in (Path(copy.table) / NOTES).iterdir())
    second = copy.expire(retain_last=4, grace="72h")
    for each in (second, first):
        copy.process().undo(str(each.run.id))
    assert not copy.missing()
    assert copy.process().check(copy.table).sound
    copy.end()
