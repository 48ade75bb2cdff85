"""A written inventory stands for a listing, and says clearly where it cannot."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from firnline.errors import StoreError, UsageError
from firnline.ports.listings import LISTED_COLUMNS
from firnline.stores.inventory import Inventory
from firnline.stores.objects import ObjectStores
from harness.servers import Server
from harness.servers.s3 import make_bucket

AT = datetime(2025, 3, 4, 5, 6, 7, 89_000, UTC)
AT_MS = 1_741_064_767_089
HEADER = "path,size,modified\n"


def rows(source: Inventory, prefix: str = "s3://b/t") -> list[tuple[object, ...]]:
    found = [batch for piece in source.split(prefix, 4) for batch in source.batches(piece)]
    assert all(tuple(batch.schema.names) == LISTED_COLUMNS for batch in found)
    return [tuple(row.values()) for batch in found for row in batch.to_pylist()]


def parquet(path: Path, times: pa.Array, groups: int = 2) -> str:
    count = len(times)
    columns = {"size": list(range(count)), "path": [f"s3://b/t/{n}" for n in range(count)], "modified": times}
    pq.write_table(pa.table({**columns, "storage_class": ["x"] * count}), path, row_group_size=groups)
    return str(path)


@pytest.mark.parametrize(
    "times",
    [
        pa.array([AT] * 5, pa.timestamp("us", "UTC")),
        pa.array([AT] * 5, pa.timestamp("ms", "Europe/Oslo")),
        pa.array([AT_MS] * 5, pa.int64()),
        pa.array(["2025-03-04T06:06:07.089+01:00"] * 5),
        pa.array(["2025-03-04T05:06:07.089Z"] * 5),
    ],
)
def test_parquet_of_every_kind_of_time(tmp_path: Path, times: pa.Array) -> None:
    source = Inventory(parquet(tmp_path / "inventory.parquet", times))
    assert len(source.split("s3://b/t", 100)) == 3
    assert rows(source) == [(f"s3://b/t/{n}", n, AT_MS, None) for n in range(5)]


def test_csv_with_more_columns_in_any_order(tmp_path: Path) -> None:
    file = tmp_path / "inventory.csv"
    file.write_text(
        f'modified,etag,path,size\n{AT_MS},x,s3://b/t/a,1\n{AT.isoformat()},,"s3a://b/t/b, c",2\n,,s3://b//t/d,3\n'
    )
    expected = [("s3://b/t/a", 1, AT_MS, None), ("s3a://b/t/b, c", 2, AT_MS, None), ("s3://b//t/d", 3, None, None)]
    assert rows(Inventory(str(file))) == expected


@pytest.mark.parametrize("unknown", ["", "yesterday", "2025-03-04T05:06:07", "2025-13-04T05:06:07Z", "1.5"])
def test_a_time_that_cannot_be_read_is_no_age(tmp_path: Path, unknown: str) -> None:
    file = tmp_path / "inventory.csv"
    file.write_text(f"{HEADER}s3://b/t/a,1,{unknown}\n")
    assert rows(Inventory(str(file))) == [("s3://b/t/a", 1, None, None)]


def test_a_time_without_a_zone_is_no_age_in_parquet_either(tmp_path: Path) -> None:
    times = pa.array([AT.replace(tzinfo=None)], pa.timestamp("us"))
    assert rows(Inventory(parquet(tmp_path / "i", times))) == [("s3://b/t/0", 0, None, None)]


def test_only_what_lies_under_the_prefix_by_any_spelling(tmp_path: Path) -> None:
    file = tmp_path / "inventory.csv"
    inside = ["s3://b/t/a", "s3a://b/t/b", "s3://B//t/c"]
    outside = ["s3://b/t2/a", "s3://b/t", "s3://c/t/a", "/t/a"]
    file.write_text(HEADER + "".join(f"{path},1,1\n" for path in inside + outside))
    assert [row[0] for row in rows(Inventory(str(file)), "s3n://b/t/")] == inside


def test_an_inventory_without_rows_lists_nothing(tmp_path: Path) -> None:
    (tmp_path / "inventory.csv").write_text(HEADER)
    assert rows(Inventory(str(tmp_path / "inventory.csv"))) == []
    assert rows(Inventory(parquet(tmp_path / "i", pa.array([], pa.int64())))) == []


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"key,size,modified\ns3://b/t/a,1,1\n", "no column path"),
        (b"path\ns3://b/t/a\n", "no column size, modified"),
        (b"path,size,modified\ns3://b/t/a,1\n", "cannot be read"),
        (b"path,size,modified\ns3://b/t/a,1,1\nt/a,1,1\n", "row 2"),
        (b"path,size,modified\n,1,1\n", "row 1"),
        (b"path,size,modified\ns3://b/t/../a,1,1\n", "row 1"),
        (b"path,size,modified\ns3://b/t/a,many,1\n", "row 1"),
        (b"path,size,modified\ns3://b/t/a,-1,1\n", "row 1"),
        (b"path,size,modified\ns3://b/t/a,,1\n", "row 1"),
        (b"PAR1 and then nothing", "cannot be read"),
        (b"\x00\xff\xfe\x00", "cannot be read|no column"),
    ],
)
def test_what_is_no_inventory_is_said_so(tmp_path: Path, content: bytes, words: str) -> None:
    file = tmp_path / "inventory"
    file.write_bytes(content)
    with pytest.raises(UsageError, match=words) as refused:
        rows(Inventory(str(file)))
    assert str(file) in refused.value.message


def test_one_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.csv"):
        rows(Inventory(str(tmp_path / "none.csv")))


def test_one_in_a_bucket_is_read_by_a_pickled_copy(tmp_path: Path, moto_server: Server) -> None:
    bucket = make_bucket(moto_server, f"inventory-{uuid4().hex}")
    whole = Path(parquet(tmp_path / "i", pa.array([AT_MS] * 5, pa.int64()))).read_bytes()
    ObjectStores(moto_server.settings).put(f"{bucket}/inventories/i.parquet", whole)
    source = pickle.loads(pickle.dumps(Inventory(f"{bucket}/inventories/i.parquet", moto_server.settings)))
    assert rows(source) == [(f"s3://b/t/{n}", n, AT_MS, None) for n in range(5)]
    with pytest.raises(StoreError):
        rows(Inventory(f"{bucket}/none.parquet", moto_server.settings))
