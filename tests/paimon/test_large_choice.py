"""What makes a Paimon table large: the entries of its manifests, which its lists count. Records tell nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from firnline.app import engines
from firnline.app.engines import is_large
from firnline.errors import UnreadableMetadata
from firnline.formats.paimon.table import PaimonFormat
from firnline.model.locations import identity
from firnline.stores.objects import ObjectStores
from firnline.testing.counting import Counting
from harness.large.tables import SHAPES
from harness.paimon import layout
from harness.paimon.java_table import JavaTable
from harness.paimon.large import LargePaimon
from harness.paimon.reader import Needs, TableReader
from harness.paimon.shapes import MAIN
from harness.paimon.worlds import Paimon

from .small import Copy, row


def counted(folder: Path, number: int) -> int:
    """Returns how many entries the plain reader finds in the manifests of a snapshot."""
    document = layout.document(folder / "snapshot" / f"snapshot-{number}")
    reader = TableReader(folder)
    lists = (document["baseManifestList"], document["deltaManifestList"])
    return sum(1 for name in lists for _ in reader._entries(name, Needs()))


def told(folder: Path) -> tuple[int, list[str]]:
    """Returns how many entries the format tells of, and what it read for that."""
    store = Counting(ObjectStores({}))
    table_format = PaimonFormat(store)
    state = table_format.load("t", str(folder))
    before = store.calls()
    entries = table_format.entries(state)
    asked = {key for (verb, key), count in store.calls().items() if count > before.get((verb, key), 0)}
    return entries, sorted(asked)


def test_its_newest_lists_are_counted(both: Paimon, copy: Copy) -> None:
    folder = Path(copy.table)
    JavaTable(both.java, folder).drop_branch("side")
    entries, read = told(folder)
    numbers = layout.snapshots(folder, MAIN)
    most = max(numbers, key=lambda number: (_records(folder, number), number))
    assert entries == max(counted(folder, number) for number in (numbers[-1], most))
    assert 0 < len(read) <= 4
    assert all("/manifest-list-" in identity(each) for each in read)


def _records(folder: Path, number: int) -> int:
    return int(layout.document(folder / "snapshot" / f"snapshot-{number}")["totalRecordCount"])


def test_a_table_that_was_emptied_is_as_large_as_it_was(both: Paimon, copy: Copy) -> None:
    table, folder = JavaTable(both.java, Path(copy.table)), Path(copy.table)
    table.write(MAIN, [row(number, "row", f"p{number}") for number in range(12)])
    full = max(layout.snapshots(folder, MAIN))
    table.truncate(MAIN)
    table.compact_manifests(MAIN)
    assert told(folder)[0] == counted(folder, full) > counted(folder, max(layout.snapshots(folder, MAIN)))


def test_a_branch_or_tag_may_be_larger_than_the_table(both: Paimon, copy: Copy) -> None:
    table, folder = JavaTable(both.java, Path(copy.table)), Path(copy.table)
    main = told(folder)[0]
    table.write("side", [row(number, "row", f"p{number}") for number in range(40)])
    entries, read = told(folder)
    assert entries > main + 20
    assert len(read) <= 4
    table.tag("side", "large", max(layout.snapshots(folder, "side")))
    table.truncate("side")
    for path in (folder / "branch/branch-side/snapshot").glob("snapshot-[1-4]"):
        path.unlink()
    assert told(folder)[0] == entries


def test_a_table_without_snapshots_is_small(copy: Copy) -> None:
    for folder in ("snapshot", "branch", "tag"):
        shutil.rmtree(Path(copy.table) / folder)
    assert told(Path(copy.table)) == (0, [])


def test_a_list_that_cannot_be_read_is_named(copy: Copy) -> None:
    newest = max(layout.snapshots(Path(copy.table), MAIN))
    name = layout.document(Path(copy.table) / "snapshot" / f"snapshot-{newest}")["baseManifestList"]
    (Path(copy.table) / "manifest" / name).unlink()
    with pytest.raises(UnreadableMetadata, match=name):
        told(Path(copy.table))


def test_many_entries_are_worth_a_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = LargePaimon(tmp_path / "t", SHAPES["tiny"])
    table.write()
    table_format = PaimonFormat(ObjectStores({}))
    state = table_format.load("t", str(table.folder))
    entries = table_format.entries(state)
    assert entries == counted(table.folder, SHAPES["tiny"].snapshots)
    assert not is_large(state, table_format)
    monkeypatch.setattr(engines, "_LARGE_FILES", entries - 1)
    assert is_large(state, table_format)
