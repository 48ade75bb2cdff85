"""What a repository needs outside its own folder is told whole: no manifest names less than its snapshots say of it."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest

from firnline.caches.expand import look_up
from firnline.errors import UnreadableMetadata
from firnline.formats.icechunk.reading.manifest import ManifestFile
from firnline.formats.icechunk.reading.objects import snapshot_at
from firnline.formats.icechunk.reading.repository import read_repository
from firnline.formats.icechunk.table import IcechunkFormat
from firnline.ops.neighbours.folders import OwnFolders
from firnline.ops.neighbours.outward import UnitMeans, Walked, outward
from firnline.stores.objects import ObjectStores
from firnline.stores.real_paths import RealPaths

from .repositories import STORE, body_of, packed


def current(folder: Path) -> tuple[str, list[ManifestFile]]:
    """Returns the snapshot of a ref, and its manifests."""
    found = read_repository(STORE, str(folder))
    tip = next(ref.snapshot for ref in found.refs)
    return tip, [*snapshot_at(STORE, str(folder), tip).manifests]


def saying_one_more(snapshot: bytes, said: ManifestFile) -> bytes:
    """Returns the snapshot saying of a manifest, and of those like it, that it has one reference more than it has."""
    body = body_of(snapshot)
    counted = struct.pack("<QI", said.size, said.refs)
    assert counted in body
    return packed(snapshot, body.replace(counted, struct.pack("<QI", said.size, said.refs + 1)))


def leads_out(folder: Path) -> None:
    table_format = IcechunkFormat(ObjectStores())
    files = [file for _, file in table_format.roots(table_format.load("r", str(folder)))]
    means = UnitMeans(table_format.expand, look_up(ObjectStores(), files).of, RealPaths())
    outward(files, means, OwnFolders((f"file://{folder}/",), ()), Walked())


def test_a_manifest_with_fewer_chunks_than_its_snapshot_says_stops_the_look(small: Path, tmp_path: Path) -> None:
    folder = tmp_path / "r"
    shutil.copytree(small, folder)
    leads_out(folder)
    tip, manifests = current(folder)
    said = max(manifests, key=lambda each: each.refs or 0)
    path = folder / "snapshots" / tip
    path.write_bytes(saying_one_more(path.read_bytes(), said))
    with pytest.raises(UnreadableMetadata, match="references, a snapshot says"):
        leads_out(folder)
