"""The small tables of `firnline.testing` are Iceberg tables: PyIceberg reads them as their writer remembers them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.io import load_file_io
from pyiceberg.manifest import ManifestEntryStatus
from pyiceberg.table import StaticTable

from firnline.testing.engines import a_long_life
from firnline.testing.manifests import AvroLayout
from firnline.testing.tables import QuickFiles, SmallTable


@pytest.mark.parametrize("version", [1, 2, 3])
def test_pyiceberg_reads_what_the_writer_remembers(tmp_path: Path, version: int) -> None:
    table = SmallTable(QuickFiles(), f"file://{tmp_path}/t", AvroLayout(version, block_bytes=1))
    table.append(2)
    if version > 1:
        table.delete_rows(table.live())
        table.delete_rows(table.live()[:1])
    table.overwrite(table.live()[:1])
    table.rewrite_manifests()
    read = StaticTable.from_metadata(table.publish(compressed=True))
    assert read.metadata.format_version == version
    assert len(read.metadata.snapshots) == len(table.changes)
    io = load_file_io({})
    for snapshot in read.metadata.snapshots:
        manifests = snapshot.manifests(io)
        named = {each.manifest_path for each in manifests} | {snapshot.manifest_list}
        entries = [entry for each in manifests for entry in each.fetch_manifest_entry(io, discard_deleted=False)]
        live = {entry.data_file.file_path for entry in entries if entry.status != ManifestEntryStatus.DELETED}
        assert named | live == table.reachable(snapshot.snapshot_id)
        assert all(
            entry.data_file.file_size_in_bytes == table.made[entry.data_file.file_path].size for entry in entries
        )


@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_file_has_the_size_that_is_remembered(tmp_path: Path, version: int) -> None:
    table, expired = a_long_life(SmallTable(QuickFiles(), f"file://{tmp_path}/t", AvroLayout(version)))
    assert {path: Path(path.removeprefix("file://")).stat().st_size for path in table.made} == {
        path: made.size for path, made in table.made.items()
    }
    assert table.victims(expired)
    assert {path for each in table.changes for path in table.reachable(each)} == table.made.keys()


def test_a_removed_file_that_was_added_again_is_needed_again(tmp_path: Path) -> None:
    table = SmallTable(QuickFiles(), f"file://{tmp_path}/t")
    first = table.append(1)
    (path,) = table.live()
    second = table.overwrite([path])
    third = table.bring_back(path)
    assert [path in table.reachable(each) for each in (first, second, third)] == [True, False, True]


def test_snapshots_share_the_manifests_that_lost_nothing(tmp_path: Path) -> None:
    table = SmallTable(QuickFiles(), f"file://{tmp_path}/t")
    first, second = table.append(), table.append()
    assert len(table.changes[first].units & table.changes[second].units) == 1


def test_files_elsewhere_are_not_below_the_tables_folder(tmp_path: Path) -> None:
    table = SmallTable(QuickFiles(), f"file://{tmp_path}/t")
    table.append(outside=True)
    (path,) = table.live()
    assert not path.startswith(f"{table.location}/")
    assert path.startswith(table.location)
