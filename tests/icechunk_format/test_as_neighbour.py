"""What a repository needs outside its own folder is told whole: no manifest names less than its snapshots say of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from firnline.caches.expand import look_up
from firnline.errors import UnreadableMetadata
from firnline.formats.icechunk.table import IcechunkFormat
from firnline.ops.neighbours.folders import OwnFolders
from firnline.ops.neighbours.outward import UnitMeans, Walked, outward
from firnline.stores.objects import ObjectStores
from firnline.stores.real_paths import RealPaths

from .repositories import say_one_more


def leads_out(folder: Path) -> None:
    table_format = IcechunkFormat(ObjectStores())
    files = [file for _, file in table_format.roots(table_format.load("r", str(folder)))]
    means = UnitMeans(table_format.expand, look_up(ObjectStores(), files).of, RealPaths())
    outward(files, means, OwnFolders((f"file://{folder}/",), ()), Walked())


def test_a_manifest_with_fewer_chunks_than_its_snapshot_says_stops_the_look(small: Path, tmp_path: Path) -> None:
    folder = tmp_path / "r"
    shutil.copytree(small, folder)
    leads_out(folder)
    say_one_more(folder)
    with pytest.raises(UnreadableMetadata, match="references, a snapshot says"):
        leads_out(folder)
