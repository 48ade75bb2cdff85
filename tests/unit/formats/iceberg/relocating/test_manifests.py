"""A relocated manifest or list decodes to the same values, but for those that tell where files lie and how large they
are there.
"""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firnline.errors import ObjectNotFound, RefusedForSafety, UnreadableMetadata, UnsupportedFormat
from firnline.formats.avro import read_header
from firnline.formats.avro.encoded import sized, varint
from firnline.formats.iceberg.relocating import IcebergRelocation
from firnline.formats.iceberg.relocating.bounds import PATH_ID, moved_bounds
from firnline.model.files import FileKind
from firnline.stores.objects import ObjectStores
from firnline.tiers.places import TierPlaces
from harness.lanes import by_lane

from .shelf import COLD, KEY, Shelf, relocation
from .written import CODECS, LIST_SCHEMA, LISTED, PATHS, SYNC, avro, bounds, entries, entry_schema, pairs, rows_of

COUNT = by_lane(25, 25, 2_000)
quick = settings(max_examples=COUNT, deadline=None, suppress_health_check=[HealthCheck.too_slow])
DELETED, DATA, POSITION_DELETES = 2, 0, 1


def manifest(*rows: Any, version: int = 2) -> bytes:
    return avro(entry_schema(version), list(rows))


def deletes(**said: Any) -> dict[str, Any]:
    """Returns an entry of position deletes."""
    file = {
        "content": POSITION_DELETES,
        "file_path": "s3://lake/t/data/deletes.parquet",
        "file_format": "PARQUET",
        "partition": {"day": None},
        "record_count": 3,
        "file_size_in_bytes": 7,
        **said,
    }
    return {"status": 1, "data_file": file}


def sizes_in(rows: list[Any]) -> dict[str, int]:
    """Returns new sizes of the position deletes that are live."""
    files = [row["data_file"] for row in rows if row["status"] != DELETED]
    return {each["file_path"]: 1_000 + len(each["file_path"]) for each in files if each.get("content") == 1}


def expected(row: Any, sizes: dict[str, int]) -> Any:
    new = copy.deepcopy(row)
    file = new["data_file"]
    is_deletes = file.get("content") == POSITION_DELETES
    if is_deletes and row["status"] != DELETED:
        file["file_size_in_bytes"] = sizes[file["file_path"]]
    for name in ("file_path", "referenced_data_file"):
        if file.get(name) is not None:
            file[name] = COLD.place(file[name])
    for name in ("lower_bounds", "upper_bounds"):
        for each in (file[name] or ()) if is_deletes else ():
            if each["key"] == PATH_ID:
                each["value"] = COLD.place(each["value"].decode()).encode()
    return new


@pytest.mark.parametrize("version", [1, 2, 3])
@quick
@given(data=st.data(), codec=st.sampled_from(CODECS), block_bytes=st.sampled_from([1, 16_000]))
def test_manifests(version: int, data: st.DataObject, codec: str, block_bytes: int) -> None:
    rows = data.draw(st.lists(entries(version), max_size=6))
    before = avro(entry_schema(version), rows, codec, block_bytes)
    sizes = sizes_in(rows_of(before))
    moving = relocation(sizes)
    after = moving.relocated(FileKind.MANIFEST, KEY, before)
    assert rows_of(after) == [expected(row, sizes) for row in rows_of(before)]
    assert read_header(after) == read_header(before)
    assert moving.target.asked == {COLD.place(path): 1 for path in sizes}  # type: ignore[attr-defined]
    assert moving.relocated(FileKind.MANIFEST, KEY, before) == after


@quick
@given(rows=st.lists(LISTED, max_size=20), codec=st.sampled_from(CODECS), block_bytes=st.sampled_from([1, 16_000]))
def test_lists(rows: list[Any], codec: str, block_bytes: int) -> None:
    before = avro(LIST_SCHEMA, rows, codec, block_bytes)
    sizes = {row["manifest_path"]: 10 + len(row["manifest_path"]) for row in rows}
    moving = relocation(sizes)
    after = moving.relocated(FileKind.MANIFEST_LIST, KEY, before)
    new = [
        {**row, "manifest_path": COLD.place(row["manifest_path"]), "manifest_length": sizes[row["manifest_path"]]}
        for row in rows_of(before)
    ]
    assert rows_of(after) == new
    assert read_header(after) == read_header(before)
    assert moving.target.asked == {COLD.place(path): 1 for path in sizes}  # type: ignore[attr-defined]


def test_a_manifest_that_many_lists_name_is_asked_for_once() -> None:
    rows = [{"manifest_path": f"s3://lake/{each}", "manifest_length": 1, "partition_spec_id": 0} for each in range(20)]
    moving = relocation({row["manifest_path"]: 5 for row in rows})
    for last in (10, 20):
        data = avro(LIST_SCHEMA, rows[:last])
        found = rows_of(moving.relocated(FileKind.MANIFEST_LIST, KEY, data))
        assert [each["manifest_length"] for each in found] == [5] * last
    assert moving.target.asked == {COLD.place(row["manifest_path"]): 1 for row in rows}  # type: ignore[attr-defined]


# ---------------------------------------------------------------- bounds


@st.composite
def in_blocks(draw: st.DrawFn, items: list[Any]) -> tuple[bytes, list[bytes]]:
    """Returns a map cut into blocks of any size, some of which tell their bytes; and the bytes of its other items."""
    pieces, rest = [], list(items)
    others = []
    while rest:
        count = draw(st.integers(1, len(rest)))
        block, rest = rest[:count], rest[count:]
        encoded = [varint(each["key"]) + sized(each["value"]) for each in block]
        others += [told for told, each in zip(encoded, block, strict=True) if each["key"] != PATH_ID]
        body = b"".join(encoded)
        pieces.append((varint(-count) + varint(len(body)) if draw(st.booleans()) else varint(count)) + body)
    return b"".join([*pieces, varint(0)]), others


@quick
@given(data=st.data(), maps=bounds())
def test_bounds_of_paths_in_maps_of_any_blocks(data: st.DataObject, maps: tuple[Any, Any]) -> None:
    items = maps[0] or []
    lower, others = data.draw(in_blocks(items))
    found, _ = moved_bounds(lower, lower, COLD)
    paths = [each["value"].decode() for each in items if each["key"] == PATH_ID]
    assert (found is None) is (not paths)
    if found is not None:
        [path] = paths
        assert [each["value"] for each in _read(found) if each["key"] == PATH_ID] == [COLD.place(path).encode()]
        assert [varint(each["key"]) + sized(each["value"]) for each in _read(found) if each["key"] != PATH_ID] == others


MAP = {"type": "record", "name": "r", "fields": [{"name": "map", "type": pairs(126, 127)}]}


def _read(encoded: bytes) -> list[Any]:
    """Returns the items, read by fastavro."""
    [row] = rows_of(avro(MAP, [], "null") + varint(1) + sized(encoded) + SYNC)
    items: list[Any] = row["map"]
    return items


def test_a_bound_alone_is_refused() -> None:
    """Paths of another scheme may lie on its other side, and lie within it once both are placed."""
    for name in ("lower_bounds", "upper_bounds"):
        alone = deletes(**{name: [{"key": PATH_ID, "value": b"s3://lake/a"}]})
        with pytest.raises(UnsupportedFormat, match="only one bound"):
            relocation(sizes_in([alone])).relocated(FileKind.MANIFEST, KEY, manifest(alone))


@pytest.mark.parametrize("value", [b"s3://lake/\xff", b"\xed\xa0\x80"])
def test_a_bound_that_is_no_text_is_damage(value: bytes) -> None:
    bound = [{"key": PATH_ID, "value": value}]
    with pytest.raises(UnreadableMetadata, match="UTF-8"):
        relocation(sizes_in([deletes()])).relocated(
            FileKind.MANIFEST, KEY, manifest(deletes(lower_bounds=bound, upper_bounds=bound))
        )


def test_two_bounds_of_one_column_are_damage() -> None:
    twice = [{"key": PATH_ID, "value": b"s3://lake/a"}, {"key": PATH_ID, "value": b"s3://lake/b"}]
    with pytest.raises(UnreadableMetadata, match="several bounds"):
        relocation(sizes_in([deletes()])).relocated(
            FileKind.MANIFEST, KEY, manifest(deletes(lower_bounds=twice, upper_bounds=twice))
        )


# ---------------------------------------------------------------- refusals


def test_deletes_that_are_not_there_yet_are_missed_by_their_name() -> None:
    with pytest.raises(ObjectNotFound, match=COLD.place("s3://lake/t/data/deletes")):
        relocation().relocated(FileKind.MANIFEST, KEY, manifest(deletes()))
    row = {"manifest_path": "s3://lake/t/m", "manifest_length": 1, "partition_spec_id": 0}
    with pytest.raises(ObjectNotFound, match=COLD.place("s3://lake/t/m")):
        relocation().relocated(FileKind.MANIFEST_LIST, KEY, avro(LIST_SCHEMA, [row]))


def test_what_is_not_understood_is_refused() -> None:
    for strange in (deletes(content=3), {**deletes(), "status": 3}):
        with pytest.raises(UnsupportedFormat, match="is not understood"):
            relocation().relocated(FileKind.MANIFEST, KEY, manifest(strange))
    encrypted = {"manifest_path": "s3://lake/m", "manifest_length": 1, "partition_spec_id": 0, "key_metadata": b"k"}
    with pytest.raises(UnsupportedFormat, match="encrypted"):
        relocation().relocated(FileKind.MANIFEST_LIST, KEY, avro(LIST_SCHEMA, [encrypted]))


def test_an_entry_without_a_path_is_not_passed_on_as_it_is() -> None:
    row = {"manifest_path": "s3://lake/m", "manifest_length": 1, "partition_spec_id": 0}
    for kind, data in (
        (FileKind.MANIFEST, avro(LIST_SCHEMA, [row])),
        (FileKind.MANIFEST_LIST, manifest(deletes())),
    ):
        with pytest.raises(UnreadableMetadata, match=KEY):
            relocation().relocated(kind, KEY, data)


def test_a_path_that_leads_elsewhere_is_refused() -> None:
    for name in ("file_path", "referenced_data_file"):
        said = {"content": DATA, name: "s3://lake/t/../x"}
        with pytest.raises(UnsupportedFormat, match="segment"):
            relocation().relocated(FileKind.MANIFEST, KEY, manifest(deletes(**said)))


@quick
@given(data=st.data(), path=PATHS)
def test_damage_is_told_with_the_name_of_the_file(data: st.DataObject, path: str) -> None:
    """A changed byte may also make other values: then the manifest is another one."""
    whole = manifest(deletes(file_path=path), deletes(content=DATA))
    place = data.draw(st.integers(0, len(whole) - 1))
    damaged = bytearray(whole)
    damaged[place] ^= data.draw(st.integers(1, 255))
    for each in (bytes(damaged), whole[:place]):
        try:
            relocation({path: 3}).relocated(FileKind.MANIFEST, KEY, each)
        except RefusedForSafety as refused:
            assert KEY in refused.message  # noqa: PT017
        except ObjectNotFound:
            assert each == bytes(damaged)  # another path


# ---------------------------------------------------------------- the port


def test_it_travels_to_executors_and_asks_real_stores(tmp_path: Path) -> None:
    place = TierPlaces(str(tmp_path / "cold"))
    target = Path(place.place("s3://lake/t/data/deletes.parquet"))
    target.parent.mkdir(parents=True)
    target.write_bytes(bytes(1234))
    moving = pickle.loads(pickle.dumps(IcebergRelocation(place, ObjectStores())))
    [row] = rows_of(moving.relocated(FileKind.MANIFEST, KEY, manifest(deletes())))
    assert row["data_file"]["file_size_in_bytes"] == 1234
    assert row["data_file"]["file_path"] == str(target)


def test_what_names_others_goes_after_them() -> None:
    moving = relocation()
    at = {kind: number for number, group in enumerate(moving.order) for kind in group}
    assert at[FileKind.DATA] < at[FileKind.POSITION_DELETES] < at[FileKind.MANIFEST] < at[FileKind.MANIFEST_LIST]
    assert at[FileKind.DELETION_VECTORS] == at[FileKind.POSITION_DELETES]
    names_nothing = {
        FileKind.DATA, FileKind.EQUALITY_DELETES, FileKind.STATISTICS, FileKind.PARTITION_STATISTICS,
    }  # fmt: skip
    assert set(at) - moving.rewritten == names_nothing
    assert moving.rewritten < set(at)
    assert isinstance(moving.share(2).target, Shelf)
