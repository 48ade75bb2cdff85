"""Whatever the schema, the codec and the blocks: each projected column is what fastavro reads."""

from __future__ import annotations

import io
import random
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firnline.formats.avro import decode, read_header
from harness.lanes import by_lane

from .iceberg_schemas import MANIFEST_ENTRY, MANIFEST_FILE, entry, manifest
from .strategies import Sample, samples

WAYS = ["python", "compiled"]
COUNT = by_lane(50, 50, 3_000)


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=COUNT, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(sample=samples(), data=st.data())
def test_any_projection_of_any_schema(way: Any, sample: Sample, data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(sorted(sample.leaves)), unique=True) if sample.leaves else st.just([]))
    wanted = {name: sample.leaves[name] for name in names} | {"absent.leaf": pa.string()}
    decoded = decode(sample.data, wanted, way=way)
    assert decoded.rows == decoded.batch.num_rows == len(sample.rows)
    assert decoded.batch.schema == pa.schema(wanted)
    decoded.batch.validate(full=True)
    for name in names:
        assert decoded.batch[name].to_pylist() == sample.column(name), name
    assert decoded.batch["absent.leaf"].null_count == len(sample.rows)


def written(schema: Any, rows: list[Any], codec: str, interval: int) -> bytes:
    out = io.BytesIO()
    metadata = {"format-version": "2"}
    fastavro.writer(out, schema, rows, codec=codec, sync_interval=interval, metadata=metadata)
    return out.getvalue()


@pytest.mark.sampled(6)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("interval", [1, 16_000])
@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "zstandard", "bzip2", "xz"])
def test_a_manifest_with_twenty_columns_of_statistics(codec: str, interval: int, way: Any) -> None:
    rng = random.Random(7)
    rows = [entry(rng) for _ in range(60)]
    wanted = {
        "data_file.file_size_in_bytes": pa.int64(),
        "status": pa.int32(),
        "data_file.file_path": pa.string(),
        "snapshot_id": pa.int64(),
        "data_file.partition.region": pa.large_string(),
        "data_file.sort_order_id": pa.int64(),
        "data_file.referenced_data_file": pa.string(),
    }
    decoded = decode(written(MANIFEST_ENTRY, rows, codec, interval), wanted, way=way)
    files = [row["data_file"] for row in rows]
    assert decoded.metadata["format-version"] == b"2"
    assert decoded.batch.schema == pa.schema(wanted)
    assert decoded.batch.to_pydict() == {
        "data_file.file_size_in_bytes": [file["file_size_in_bytes"] for file in files],
        "status": [row["status"] for row in rows],
        "data_file.file_path": [file["file_path"] for file in files],
        "snapshot_id": [row["snapshot_id"] for row in rows],
        "data_file.partition.region": [file["partition"]["region"] for file in files],
        "data_file.sort_order_id": [file["sort_order_id"] for file in files],
        "data_file.referenced_data_file": [None] * len(rows),
    }


@pytest.mark.parametrize("way", WAYS)
def test_a_manifest_list(way: Any) -> None:
    rng = random.Random(8)
    rows = [manifest(rng) for _ in range(60)]
    names = {"manifest_path": pa.string(), "added_files_count": pa.int32(), "content": pa.int32()}
    decoded = decode(written(MANIFEST_FILE, rows, "deflate", 4000), names, way=way)
    assert decoded.batch.to_pylist() == [{name: row[name] for name in names} for row in rows]


def test_the_header_tells_schema_codec_and_metadata() -> None:
    data = written(MANIFEST_FILE, [], "deflate", 4000)
    header = read_header(data)
    assert header.writer.codec == "deflate"
    assert header.schema["name"] == "manifest_file"
    assert header.metadata["format-version"] == b"2"
    assert header.body == len(data)
