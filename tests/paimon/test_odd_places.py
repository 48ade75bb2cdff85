"""Names and folders that no careful person would choose: none of them makes a run lose, miss or retry anything."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from firnline.errors import FirnlineError, RefusedForSafety, UnreadableMetadata, UnsupportedFormat
from firnline.ops.orphans.neighbours import outermost
from harness.paimon import layout
from harness.paimon.java_table import JavaTable
from harness.paimon.reader import TableReader
from harness.paimon.shapes import MAIN, Shape
from harness.paimon.worlds import Paimon

from .aged import MEANT, a_name, age, disk
from .small import Copy, quick_folder, row, seen_by_java

# ---------------------------------------------------------------- names


def assert_refused(copy: Copy, error: type[FirnlineError], said: str) -> None:
    """An expiry stops with that word, and changes nothing."""
    before = copy.picture()
    with pytest.raises(error, match=said):
        copy.expire()
    assert copy.picture() == before


@pytest.mark.parametrize("name", ["EARLIEST", "LATEST"])
def test_a_hint_that_is_no_text_is_not_believed_either(both: Paimon, copy: Copy, name: str) -> None:
    (copy.folder / "t/snapshot" / name).write_bytes(b"\xff\xfe\x00")
    copy.expire()
    assert layout.snapshots(copy.folder / "t", MAIN) == [6, 7]
    assert not copy.missing()
    assert seen_by_java(both, copy)[:2] == (7, 6)


def test_a_number_with_zeros_before_it_is_refused(copy: Copy) -> None:
    """No reader asks for such a name. It is another object than the snapshot of that number."""
    shutil.copyfile(copy.folder / "t/snapshot/snapshot-3", copy.folder / "t/snapshot/snapshot-003")
    assert_refused(copy, UnreadableMetadata, "snapshot-003")


def test_two_refs_of_one_name_are_refused(both: Paimon, copy: Copy) -> None:
    table = JavaTable(both.java, copy.folder / "t")
    table.tag("side", "x", 3)
    table.tag(MAIN, "side:x", 4)
    assert_refused(copy, UnsupportedFormat, "called side:x: a tag at 4 and a tag at side:3")


def test_a_second_main_branch_is_refused(copy: Copy) -> None:
    shutil.copytree(copy.folder / "t/branch/branch-side", copy.folder / "t/branch/branch-main")
    assert_refused(copy, UnsupportedFormat, "second main branch")


def test_a_folder_of_data_at_the_root_of_the_store_is_refused(copy: Copy) -> None:
    """Paimon writes there indeed, and not into the table's folder."""
    for schema in Path(copy.table).glob("**/schema/schema-*"):
        option = '"options" : { "data-file.path-directory" : "/rows",'
        schema.write_text(schema.read_text().replace('"options" : {', option, 1))
    with pytest.raises(UnsupportedFormat, match="'/rows', which is no folder of the table"):
        copy.expire()


# ---------------------------------------------------------------- folders outside


class Lake:
    """A warehouse whose tables may keep their data in one folder outside."""

    def __init__(self, both: Paimon, root: Path) -> None:
        self.both, self.root = both, root

    @property
    def outside(self) -> Path:
        return self.root / "outside"

    def table(self, name: str, spelled: str = "file://{}/") -> JavaTable:
        """Makes a table with two commits; its data lies outside."""
        paths = {
            "data-file.external-paths": spelled.format(self.outside),
            "data-file.external-paths.strategy": "round-robin",
        }
        table = JavaTable(self.both.java, self.root / name)
        table.folder.parent.mkdir(parents=True, exist_ok=True)
        table.create(Shape("java", True, ("p",), {"bucket": "1", **paths}))
        table.write(MAIN, [row(1, "one"), row(2, "two")])
        table.write(MAIN, [row(2, "deux")])
        return table

    def stray(self) -> Path:
        path = self.outside / "p=gone" / "bucket-0" / a_name("data-", ".parquet")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"nobody's")
        return path

    def search(self, table: JavaTable, **asked: object) -> None:
        age(disk(self.root))
        Copy(self.root).process().orphans(str(table.folder), include_outside=True, **{**MEANT, **asked})

    def sound(self, *tables: JavaTable) -> bool:
        readers = [TableReader(each.folder, [self.outside]) for each in tables]
        return not any(needs.missing for reader in readers for needs in reader.reachable().values())


@pytest.fixture
def lake(both: Paimon) -> Iterator[Lake]:
    folder = quick_folder()
    yield Lake(both, folder)
    shutil.rmtree(folder)


@pytest.mark.parametrize("spelled", ["file://{}", "file://{}/", "file:{}"])
def test_a_folder_outside_is_searched_however_it_is_spelled(lake: Lake, spelled: str) -> None:
    table, stray = lake.table("db.db/t", spelled), lake.stray()
    lake.search(table)
    assert not stray.exists()
    assert lake.sound(table)


def test_a_slash_at_its_end_puts_no_folder_into_itself() -> None:
    assert outermost(["/a/b/", "/a/c", "/a/c/d/", "/a/b"]) == ("/a/b", "/a/c")


@pytest.mark.parametrize("names", [("db.db/one", "db.db/two"), ("a.db/one", "b.db/two"), ("lake/one", "lake/two")])
def test_tables_of_one_warehouse_that_share_a_folder_outside_are_asked(lake: Lake, names: tuple[str, str]) -> None:
    one, two = (lake.table(name) for name in names)
    lonely = JavaTable(lake.both.java, lake.root / names[0].replace("one", "three"))
    lonely.create(Shape("java", False, (), {"bucket": "-1"}))
    stray = lake.stray()
    lake.search(one)
    assert not stray.exists()
    assert lake.sound(one, two)


def test_a_table_that_came_while_a_search_waits_is_asked_before_its_purge(lake: Lake) -> None:
    one, two = lake.table("db.db/one"), lake.table("db.db/two")
    stray, hidden = lake.stray(), lake.root / "hidden"
    shutil.move(two.folder, hidden)
    copy = Copy(lake.root)
    age(disk(lake.root))
    plan, _ = copy.process().orphans(str(one.folder), include_outside=True, **{**MEANT, "grace": "1m"})
    assert plan.victims.all.files > 1, "what the other one needs looked like garbage"
    shutil.move(hidden, two.folder)
    copy.clock.advance(60_001)
    copy.process().resume(str(one.folder), include_outside=True)
    assert not stray.exists()
    assert lake.sound(one, two)


def _moved_its_data(lake: Lake, two: JavaTable) -> None:
    two.set_option("data-file.external-paths", f"file://{lake.root}/elsewhere")


def _only_a_branch_names_the_folder(lake: Lake, two: JavaTable) -> None:
    two.tag(MAIN, "t", 2)
    two.create_branch("b", "t")
    schema = two.folder / "schema/schema-0"
    said = json.loads(schema.read_text())
    said["options"] = {name: value for name, value in said["options"].items() if "external" not in name}
    schema.write_text(json.dumps(said))


def _is_a_link(lake: Lake, two: JavaTable) -> None:
    shutil.move(two.folder, lake.root / "far")
    two.folder.symlink_to(lake.root / "far")


def _is_in_a_database_that_is_a_link(lake: Lake, two: JavaTable) -> None:
    shutil.move(two.folder.parent, lake.root / "far")
    two.folder.parent.symlink_to(lake.root / "far")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "hidden", [_moved_its_data, _only_a_branch_names_the_folder, _is_a_link, _is_in_a_database_that_is_a_link]
)
def test_a_table_is_asked_however_hard_it_is_to_see_that_it_shares_the_folder(
    lake: Lake, hidden: Callable[[Lake, JavaTable], None]
) -> None:
    """Paimon reads it as before: its files outside stay."""
    one, two = lake.table("a.db/one"), lake.table("b.db/two")
    hidden(lake, two)
    stray = lake.stray()
    lake.search(one)
    assert not stray.exists()
    assert lake.sound(one, two)


def test_a_folder_outside_that_has_two_names_stops_the_search(lake: Lake) -> None:
    """The other table names it through a link: what it needs is listed under another name."""
    one = lake.table("a.db/one")
    link = lake.root / "link"
    link.symlink_to(lake.outside)
    lake.table("b.db/two", f"file://{link}")
    lake.stray()
    before = disk(lake.outside)
    with pytest.raises(RefusedForSafety, match="in their folder"):
        lake.search(one)
    assert disk(lake.outside) == before
