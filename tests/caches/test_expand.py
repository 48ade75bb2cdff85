"""A unit that was opened once is not opened again while its bytes are the same; anything else is opened."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline.caches.disk import DiskCache
from firnline.caches.expand import CachedExpand, Stamps, as_one, from_bytes, look_up, to_bytes
from firnline.caches.seal import Seal, entry_name
from firnline.errors import StoreError, UnreadableMetadata
from firnline.formats.columns import ROW_SCHEMA
from firnline.formats.iceberg.expand import IcebergExpand
from firnline.local.engine import LocalEngine
from firnline.model.files import File, FileKind
from firnline.ports.stores import ObjectMeta
from firnline.stores.objects import ObjectStores
from firnline.testing.counting import Counting
from firnline.testing.damage import SPOILED
from firnline.testing.engines import a_long_life
from firnline.testing.manifests import AvroLayout
from firnline.testing.surveys import expected
from firnline.testing.tables import QuickFiles, SmallTable

from .lying import SECRET, Ledger, memory_of
from .worlds import survey_with


@pytest.fixture
def table(tmp_path: Path) -> SmallTable:
    return SmallTable(QuickFiles(), f"file://{tmp_path}/t", AvroLayout(2, block_bytes=1))


def units_read(counting: Counting) -> set[str]:
    return {key for (verb, key), _ in counting.calls().items() if verb == "get" and key.endswith(".avro")}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_second_survey_opens_nothing_and_a_third_what_is_new(tmp_path: Path, version: int) -> None:
    table, expired = a_long_life(SmallTable(QuickFiles(), f"file://{tmp_path}/t", AvroLayout(version)))
    cache, counts = DiskCache(str(tmp_path / "cache")), []
    for _ in range(3):
        counting = Counting(ObjectStores())
        answer = survey_with(LocalEngine(), table, expired, counting, memory_of(cache))
        assert answer == expected(table, expired)
        counts.append(len(units_read(counting)))
        if len(counts) == 2:
            table.append()
    assert counts == [counts[0], 0, 2]
    assert counts[0] == answer.units_opened - 2


def test_another_secret_knows_nothing_of_the_entries(table: SmallTable) -> None:
    first = table.append(3)
    ledger, counting = Ledger(), Counting(ObjectStores())
    survey_with(LocalEngine(), table, {first}, counting, memory_of(ledger))
    before = counting.calls()
    survey_with(LocalEngine(), table, {first}, counting, memory_of(ledger, secret=b"of another machine"))
    assert len(units_read(counting)) == 2
    assert sum((counting.calls() - before).values()) >= 2


@pytest.mark.parametrize("how", SPOILED)
@pytest.mark.parametrize("kind", [FileKind.MANIFEST, FileKind.MANIFEST_LIST])
def test_a_unit_that_was_spoiled_since_is_noticed(table: SmallTable, how: str, kind: FileKind) -> None:
    """Never rules 3 and 12: the cache still has the true answer, but nobody may go on beside a damaged unit."""
    first, second = table.append(3), table.append(1)
    store, memory = ObjectStores(), memory_of(Ledger())
    survey_with(LocalEngine(), table, {first}, store, memory)
    unit = next(path for path in table.changes[second].units if table.made[path].kind is kind)
    SPOILED[how](unit.removeprefix("file://"))
    with pytest.raises(UnreadableMetadata) as refused:
        survey_with(LocalEngine(), table, {first}, store, memory)
    assert unit in refused.value.message


def test_an_object_replaced_under_its_name_by_one_of_the_same_size_is_read_again(tmp_path: Path) -> None:
    table = SmallTable(QuickFiles(), f"file://{tmp_path}/t", AvroLayout(2, "null"))
    first = table.append(1)
    table.overwrite(table.live())
    store, memory = ObjectStores(), memory_of(Ledger())
    before = survey_with(LocalEngine(), table, {first}, store, memory)
    (unit,) = [path for path in table.changes[first].units if table.made[path].kind is FileKind.MANIFEST]
    path = Path(unit.removeprefix("file://"))
    (old,) = [key for key, (kind, _) in before.victims.items() if kind == "data"]
    other = old[:-9] + "X" + old[-8:]
    data = path.read_bytes()
    path.write_bytes(_renamed(data, old, other))
    after = survey_with(LocalEngine(), table, {first}, store, memory)
    assert other in after.victims
    assert old not in after.victims


def _renamed(data: bytes, old: str, new: str) -> bytes:
    """Returns a manifest of the same length that names another file."""
    assert len(old) == len(new)
    return data.replace(old.encode(), new.encode())


class Unlisted:
    """A store whose folders may not be listed."""

    def __init__(self, store: ObjectStores) -> None:
        self._store = store

    def get(self, key: str) -> bytes:
        return self._store.get(key)

    def head(self, key: str) -> ObjectMeta:
        return self._store.head(key)

    def list(self, prefix: str) -> object:
        raise StoreError("no permission to list")


def test_what_cannot_be_listed_is_not_remembered(table: SmallTable) -> None:
    first = table.append(3)
    ledger = Ledger()
    store = Unlisted(ObjectStores())
    assert survey_with(LocalEngine(), table, {first}, store, memory_of(ledger)) == expected(table, {first})  # type: ignore[arg-type]
    assert not ledger.entries
    assert not ledger.asked


def test_everything_an_answer_depends_on_is_in_its_name(tmp_path: Path) -> None:
    listed = [ObjectMeta(f"file:///t/{name}", 5, 7, f"tag-{name}") for name in "ab"]
    unit = File(FileKind.MANIFEST, "file:///t/a", 5, opens=True, expects=None)
    expand = CachedExpand(IcebergExpand(ObjectStores()), "iceberg", Ledger(), Seal(SECRET), Stamps(listed), 60)
    others = [
        File(FileKind.MANIFEST_LIST, "file:///t/a", 5, opens=True),
        File(FileKind.MANIFEST, "file:///t/b", 5, opens=True),
        File(FileKind.MANIFEST, "/t/a", 5, opens=True),
        File(FileKind.MANIFEST, "file:///t/a", 6, opens=True),
        File(FileKind.MANIFEST, "file:///t/a", None, opens=True),
        File(FileKind.MANIFEST, "file:///t/a", 5, opens=True, expects=1),
    ]
    names = expand.names([unit, *others])
    for change in ({"etag": "other"}, {"size": 6}, {"modified_ms": 8}):
        facts = {"size": 5, "modified_ms": 7, "etag": "tag-a", **change}
        again = CachedExpand(
            expand.expand, "iceberg", Ledger(), expand.seal, Stamps([ObjectMeta(unit.key, **facts)]), 60
        )  # type: ignore[arg-type]
        names += again.names([unit])
    names += replace(expand, format="paimon").names([unit])
    assert None not in names
    assert len(set(names)) == len(names)
    assert expand.names([File(FileKind.MANIFEST, "file:///t/c", 5, opens=True)]) == [None]


def test_names_of_different_parts_differ() -> None:
    parts = [("ab", "c"), ("a", "bc"), ("abc",), ("a", "b", "c"), ("a", None), ("a", "None"), (1,), ("1",), (b"1",)]
    assert len({entry_name(each) for each in parts}) == len(parts)


def test_stamps_are_told_apart_by_any_number_of_objects() -> None:
    listed = [ObjectMeta(f"s3://b/t/{number}", number, 0, f"{number}") for number in range(5_000)]
    stamps = pickle.loads(pickle.dumps(Stamps(listed)))
    assert len(stamps) == 5_000
    assert len(set(stamps.of([each.key for each in listed]))) == 5_000
    assert stamps.of(["s3a://b/t/17"]) == stamps.of(["s3://b/t/17"]) != [None]
    assert stamps.of(["s3://b/t/5000"]) == [None]
    assert len(Stamps([ObjectMeta("s3://b/x", 1)])) == 0, "without a tag nothing identifies the bytes"
    assert Stamps([listed[1], listed[1]]).of([listed[1].key]) == [None], "two objects of one name vouch for nothing"


def test_only_folders_of_units_are_listed(tmp_path: Path) -> None:
    for folder in ("metadata", "data"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.avro").write_bytes(b"x")
    roots = [File(FileKind.MANIFEST_LIST, f"{tmp_path}/metadata/x.avro", opens=True)]
    roots.append(File(FileKind.STATISTICS, f"{tmp_path}/data/x.avro"))
    stamps = look_up(ObjectStores(), roots)
    assert None not in stamps.of([f"file://{tmp_path}/metadata/x.avro"])
    assert stamps.of([f"file://{tmp_path}/data/x.avro"]) == [None]


def rows_of(count: int, scheme: str) -> pa.RecordBatch:
    """Rows whose identities are their keys where the scheme is s3."""
    keys = [f"{scheme}://bucket/data/{number:08x}.parquet" for number in range(count)]
    names = [key.replace(f"{scheme}:", "s3:") for key in keys]
    sizes = [None if number % 3 else number for number in range(count)]
    columns = [names, keys, sizes, ["data"] * count, [False] * count]
    return pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, ROW_SCHEMA, strict=True)], schema=ROW_SCHEMA)


@pytest.mark.parametrize("schemes", [["s3"], ["s3a"], ["s3", "s3"], ["s3", "s3a", "s3"]])
@pytest.mark.parametrize("count", [0, 1, 3_000])
def test_batches_come_back_as_they_were(count: int, schemes: list[str]) -> None:
    batches = [rows_of(count, scheme) for scheme in schemes]
    read = [from_bytes(to_bytes(batch)) for batch in batches]
    back = as_one([each for each in read if each is not None])
    assert back.equals(pa.concat_batches(batches))
    assert back.schema.equals(ROW_SCHEMA, check_metadata=True)


@given(st.binary(max_size=200))
def test_what_is_no_stream_is_nothing(data: bytes) -> None:
    assert from_bytes(data) is None


def test_what_is_no_batch_is_nothing() -> None:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, ROW_SCHEMA):
        pass
    assert from_bytes(sink.getvalue().to_pybytes()) is None
