"""Listing folders of several tables: each by its own means."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from firnline.ports.stores import shared
from firnline.stores.by_folder import ByFolder
from firnline.stores.inventory import Inventory
from firnline.stores.ranges import ObjectRanges


def listed(source: ByFolder, folder: str) -> set[str]:
    batches = (batch for piece in source.split(folder, 3) for batch in source.batches(piece))
    return {key.rpartition("/")[2] for batch in batches for key in batch.column("key").to_pylist()}


def test_each_folder_is_listed_by_the_innermost_that_it_lies_in(tmp_path: Path) -> None:
    """What an inventory names is there in that alone: so it tells by whom a folder was listed."""
    for place in ("a/x", "a/b/y", "c/z"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_bytes(b"1")
    paths = [f"file://{tmp_path}/{place}" for place in ("a/written", "a/b/written", "c/written")]
    rows = {"path": paths, "size": [1] * 3, "modified": [1_577_836_800_000] * 3}
    pq.write_table(pa.table(rows), tmp_path / "inventory.parquet")
    written, live = Inventory(str(tmp_path / "inventory.parquet")), ObjectRanges()
    by_stem = {f"file://{tmp_path}/a/": live, f"file://{tmp_path}/a/b/": written}
    source = ByFolder(by_stem, written)
    for each in (source, pickle.loads(pickle.dumps(source)), shared(source, 4)):
        assert listed(each, f"file://{tmp_path}/a/b") == {"written"}
        assert listed(each, f"{tmp_path}/a/b/") == {"written"}
        assert "x" in listed(each, f"file://{tmp_path}/a")
        assert listed(each, f"file://{tmp_path}/c") == {"written"}
