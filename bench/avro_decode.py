"""How many manifest entries a second `decode` and fastavro read, for each codec and block size.

Both make the same Arrow columns. They are measured in turns, in processor time, and the best of each counts, so that
a busy machine slows both alike. Exits 1 if `decode` is less than 15 times as fast anywhere.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import fastavro
import pyarrow as pa

from firnline.formats.avro import decode

FLOOR = 15.0
ENTRIES = 3000
ROUNDS = 5
COLUMNS = {
    "status": pa.int32(),
    "snapshot_id": pa.int64(),
    "data_file.content": pa.int32(),
    "data_file.file_path": pa.string(),
    "data_file.file_size_in_bytes": pa.int64(),
    "data_file.file_format": pa.string(),
}
CODECS = ("null", "deflate", "zstandard", "snappy")
BLOCKS = {"64 KB": 64_000, "1 record": 1}


def schemas() -> ModuleType:
    """The Iceberg schemas that the tests use as well."""
    path = Path(__file__).parents[1] / "tests/unit/formats/avro/iceberg_schemas.py"
    spec = importlib.util.spec_from_file_location("iceberg_schemas", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def written(schema: Any, entries: list[Any], codec: str, interval: int) -> bytes:
    """A manifest with blocks of about `interval` bytes."""
    out = io.BytesIO()
    fastavro.writer(out, schema, entries, codec=codec, sync_interval=interval)
    return out.getvalue()


def seconds(work: Callable[[], Any]) -> float:
    """How much processor time the work takes once."""
    start = time.process_time()
    work()
    return time.process_time() - start


def flat(entry: Any) -> dict[str, Any]:
    """The wanted columns of one entry."""
    file = entry["data_file"]
    return {
        "status": entry["status"],
        "snapshot_id": entry["snapshot_id"],
        "data_file.content": file["content"],
        "data_file.file_path": file["file_path"],
        "data_file.file_size_in_bytes": file["file_size_in_bytes"],
        "data_file.file_format": file["file_format"],
    }


def compare(data: bytes) -> tuple[float, float]:
    """The best seconds of fastavro and of decode, which must agree."""

    def with_fastavro() -> pa.RecordBatch:
        rows = [flat(entry) for entry in fastavro.reader(io.BytesIO(data))]
        return pa.RecordBatch.from_pylist(rows, schema=pa.schema(COLUMNS))

    def with_decode() -> pa.RecordBatch:
        return decode(data, COLUMNS, way="compiled").batch

    assert with_decode().equals(with_fastavro())
    pairs = [(seconds(with_fastavro), min(seconds(with_decode) for _ in range(20))) for _ in range(ROUNDS)]
    return min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)


def measure() -> list[dict[str, Any]]:
    """One line for each codec and block size."""
    iceberg = schemas()
    rng = random.Random(20)
    entries = [iceberg.entry(rng) for _ in range(ENTRIES)]
    lines = []
    for codec in CODECS:
        for name, interval in BLOCKS.items():
            theirs, ours = compare(written(iceberg.MANIFEST_ENTRY, entries, codec, interval))
            rates = {"fastavro": round(ENTRIES / theirs), "decode": round(ENTRIES / ours)}
            lines.append({"codec": codec, "blocks": name, **rates, "ratio": round(theirs / ours, 1)})
    return lines


def show(lines: list[dict[str, Any]]) -> None:
    """The lines as a table."""
    print(f"{'codec':10} {'blocks':>9} {'fastavro/s':>11} {'decode/s':>10} {'ratio':>7}")
    for line in lines:
        print(
            f"{line['codec']:10} {line['blocks']:>9} {line['fastavro']:>11,} {line['decode']:>10,}"
            f" {line['ratio']:>6.1f}×"
        )


def main() -> int:
    """0 if every ratio reaches the floor."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    lines = measure()
    if arguments.json:
        print(json.dumps({"floor": FLOOR, "cells": lines}))
    else:
        show(lines)
    return 0 if all(line["ratio"] >= FLOOR for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
