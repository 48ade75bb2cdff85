"""A spliced file is what fastavro would have written with the new values; without any, it is the same bytes."""

from __future__ import annotations

import copy
import io
import random
from typing import Any

import fastavro
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firnline.formats.avro import CorruptAvro, read_header
from firnline.formats.avro.encoded import bytes_at, bytes_by_number, items_of, number_at, sized, varint
from firnline.formats.avro.splicing import splice
from harness.lanes import by_lane

from .iceberg_schemas import MANIFEST_ENTRY, MANIFEST_FILE, entry, manifest
from .strategies import Sample, samples
from .test_equals_fastavro import written

WAYS = ["python", "compiled"]
CODECS = ["null", "deflate", "snappy", "zstandard", "bzip2", "xz"]
COUNT = by_lane(60, 60, 3_000)


def as_it_is(value: bytes, _: int) -> bytes:
    return value


def rows_of(data: bytes) -> list[Any]:
    return list(fastavro.reader(io.BytesIO(data)))


def moved(value: bytes, _: int) -> bytes:
    path, _ = bytes_at(value, 0)
    return sized(path.replace(b"s3://", b"s3://cold-bucket/mirror/of/"))


def doubled(value: bytes, _: int) -> bytes:
    return varint(2 * number_at(value, 0)[0])


def with_moved_bounds(value: bytes, _: int) -> bytes:
    items = items_of(value, bytes_by_number, "bounds")
    told = b"".join(varint(key) + sized(bound + b"!" if key == 2 else bound) for key, bound in items)
    return (varint(len(items)) + told if items else b"") + varint(0)


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=COUNT, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(sample=samples(), data=st.data())
def test_values_that_stay_leave_every_record_as_it_was(way: Any, sample: Sample, data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(sorted(sample.leaves)), unique=True) if sample.leaves else st.just([]))
    found = splice(sample.data, dict.fromkeys((*names, "absent.leaf"), as_it_is), way=way)
    assert rows_of(found) == rows_of(sample.data)
    if read_header(sample.data).writer.codec == "null":
        assert found == sample.data


@pytest.mark.sampled(6)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("interval", [1, 16_000])
@pytest.mark.parametrize("codec", CODECS)
def test_paths_sizes_and_bounds_of_a_manifest(codec: str, interval: int, way: Any) -> None:
    rng = random.Random(11)
    rows = [entry(rng) for _ in range(60)]
    data = written(MANIFEST_ENTRY, rows, codec, interval)
    rewrites = {
        "data_file.lower_bounds": with_moved_bounds,
        "data_file.referenced_data_file": moved,
        "data_file.file_path": moved,
        "data_file.file_size_in_bytes": doubled,
    }
    found = splice(data, rewrites, way=way)
    assert read_header(found) == read_header(data)
    expected = [_expected(row) for row in rows_of(data)]
    assert rows_of(found) == expected
    assert all(new["data_file"] != row["data_file"] for new, row in zip(expected, rows_of(data), strict=True))


def _expected(row: dict[str, Any]) -> dict[str, Any]:
    new = copy.deepcopy(row)
    file = new["data_file"]
    for name in ("file_path", "referenced_data_file"):
        if file.get(name) is not None:
            file[name] = file[name].replace("s3://", "s3://cold-bucket/mirror/of/")
    file["file_size_in_bytes"] *= 2
    for each in file["lower_bounds"] or ():
        each["value"] += b"!" if each["key"] == 2 else b""
    return new


def test_paths_and_lengths_of_a_list() -> None:
    rng = random.Random(5)
    rows = [manifest(rng) for _ in range(40)]
    data = written(MANIFEST_FILE, rows, "deflate", 1_000)
    found = rows_of(splice(data, {"manifest_path": moved, "manifest_length": doubled}))
    assert [each["manifest_length"] for each in found] == [2 * each["manifest_length"] for each in rows]
    rest = [{key: value for key, value in each.items() if "manifest_" not in key} for each in rows_of(data)]
    assert [{key: value for key, value in each.items() if "manifest_" not in key} for each in found] == rest


def test_a_damaged_file_is_refused() -> None:
    data = written(MANIFEST_FILE, [manifest(random.Random(5))], "null", 1_000)
    for cut in (len(data) - 1, len(data) - 40, 10):
        with pytest.raises(CorruptAvro):
            splice(data[:cut], {"manifest_path": moved})


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("interval", [1, 16_000])
def test_a_rewrite_is_told_the_number_of_the_record(interval: int, way: Any) -> None:
    """Also where other records have no value, and blocks begin."""
    rng = random.Random(7)
    rows = [entry(rng) for _ in range(60)]
    data = written(MANIFEST_ENTRY, rows, "deflate", interval)
    found = rows_of(
        splice(data, dict.fromkeys(["snapshot_id", "sequence_number"], lambda _, row: varint(row)), way=way)
    )
    assert any(row["snapshot_id"] is None for row in rows)
    assert [each["sequence_number"] for each in found] == list(range(60))
    numbered = [None if row["snapshot_id"] is None else number for number, row in enumerate(rows)]
    assert [each["snapshot_id"] for each in found] == numbered


@given(st.integers(-(2**63), 2**63 - 1))
def test_numbers_are_written_as_they_are_read(number: int) -> None:
    assert number_at(varint(number), 0) == (number, len(varint(number)))
