"""A neighbour's list that is shorter than its snapshot says stops a plan, whatever was looked at or trusted before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.manifest import write_manifest_list

from firnline.app.places import now_ms
from firnline.errors import FirnlineError, RefusedForSafety
from firnline.lake import open_lake
from firnline.model.files import File, FileKind
from firnline.ops.neighbours.cards import Card, cards_from_bytes, cards_to_bytes, walked_from_bytes, walked_to_bytes
from firnline.ops.neighbours.folders import Folders, OwnFolders
from firnline.ops.neighbours.outward import Bridge, UnitMeans, Walked, outward
from firnline.ports.catalogs import TableName
from firnline.stores.real_paths import RealPaths
from tests.neighbours.lakes import RealLake


@pytest.fixture
def clone(lake: RealLake) -> RealLake:
    """Table b reads files of a, which a does not need any more; a snapshot of its own tells how many there are."""
    lake.create("a")
    for each in range(3):
        lake.append("a", each)
    lake.clone("a", "b")
    lake.append("b", 99)
    lake.expire("b", include_outside=False, blast_radius=1.0)
    lake.overwrite("a", 7)
    return lake


def cut_list(lake: RealLake) -> tuple[Path, bytes]:
    """Leaves only what b wrote itself in its list. Returns the list's path, and what was there."""
    table = lake.table("b")
    snapshot = table.current_snapshot()
    assert snapshot is not None
    kept = [each for each in snapshot.manifests(table.io) if "/db/b/" in each.manifest_path]
    path = Path(snapshot.manifest_list.removeprefix("file://"))
    whole = path.read_bytes()
    with write_manifest_list(
        format_version=table.metadata.format_version,
        output_file=table.io.new_output(snapshot.manifest_list),
        snapshot_id=snapshot.snapshot_id,
        parent_snapshot_id=snapshot.parent_snapshot_id,
        sequence_number=snapshot.sequence_number,
        avro_compression="deflate",
    ) as writer:
        writer.add_manifests(kept)
    assert path.read_bytes() != whole
    return path, whole


def refused(lake: RealLake, *trust: str) -> str:
    """Returns what a plan of a is refused with, of a process of its own."""
    (lake.folder / "firnline.yaml").write_text(lake.policy)
    opened = open_lake(str(lake.folder / "firnline.yaml"), engine="local", trust=trust)
    try:
        plan = opened.plan("lake.db.a", older_than=now_ms(), retain_last=1, blast_radius=1.0).plan
    except FirnlineError as error:
        return error.message
    return plan.conflict.why if plan.conflict is not None else plan.refused or ""


def test_a_list_that_was_cut_after_it_was_looked_at_stops_plan_and_expiry(clone: RealLake) -> None:
    assert not refused(clone)
    path, whole = cut_list(clone)
    assert "tells of" in refused(clone)
    with pytest.raises(RefusedForSafety, match="tells of"):
        clone.expire("a", blast_radius=1.0)
    path.write_bytes(whole)
    assert clone.read("b") == [0, 1, 2, 99]


def test_what_one_command_vouched_for_is_not_remembered_for_the_next(clone: RealLake) -> None:
    cut_list(clone)
    head = clone.table("b").current_snapshot()
    assert head is not None
    assert "tells of" in refused(clone)
    assert not refused(clone, str(head.snapshot_id))
    assert "tells of" in refused(clone)


def test_what_is_remembered_says_what_is_expected_below_each_unit() -> None:
    bridges = (Bridge(File(FileKind.MANIFEST, "s3://b/t/m.avro", 7, True, 5), ("s3://b/o/",)),)
    card = Card("s3://b/t/1.json", "u", Folders(("s3://b/t/",), ()), OwnFolders(("s3://b/t/",), ()), bridges)
    name = TableName("lake", ("db",), "t")
    assert list(cards_from_bytes(cards_to_bytes([(name, card)]))) == [(name, card)]
    walked = Walked({bytes(16)}, {bytes(16): bridges})
    assert walked_from_bytes(walked_to_bytes(walked)) == walked


def _looked_at(clone: RealLake, said: int | None, walked: Walked) -> Any:
    """Looks at the current list of b, of which the table says that so many files are below it."""
    from firnline.caches.expand import look_up
    from firnline.formats.iceberg.table import IcebergFormat
    from firnline.stores.objects import ObjectStores

    snapshot = clone.table("b").current_snapshot()
    assert snapshot is not None
    files = [File(FileKind.MANIFEST_LIST, snapshot.manifest_list, opens=True, expects=said)]
    means = UnitMeans(IcebergFormat(ObjectStores()).expand, look_up(ObjectStores(), files).of, RealPaths())
    return outward(files, means, OwnFolders((f"file://{clone.folder}/warehouse/db/b/",), ()), walked)


def test_a_unit_that_was_opened_unasked_is_opened_again_where_the_table_says_what_it_holds(clone: RealLake) -> None:
    cut_list(clone)
    walked = Walked()
    _looked_at(clone, None, walked)
    with pytest.raises(FirnlineError, match="tells of"):
        _looked_at(clone, 4, walked)
