"""What a repository needs outside its own folder is told whole: no manifest names less than its snapshots say of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from firnline.caches.expand import look_up
from firnline.errors import UnreadableMetadata
from firnline.formats.icechunk.reading.damage import CorruptIcechunk, UnsupportedIcechunk
from firnline.formats.icechunk.reading.manifest import ManifestFile, read_manifest
from firnline.formats.icechunk.reading.objects import snapshot_at
from firnline.formats.icechunk.reading.repository import read_repository
from firnline.formats.icechunk.table import IcechunkFormat
from firnline.ops.neighbours.folders import OwnFolders
from firnline.ops.neighbours.outward import UnitMeans, Walked, outward
from firnline.stores.objects import ObjectStores
from firnline.stores.real_paths import RealPaths

from .repositories import HEADER, STORE


def current_manifests(folder: Path) -> list[ManifestFile]:
    found = read_repository(STORE, str(folder))
    tip = next(ref.snapshot for ref in found.refs)
    return [*snapshot_at(STORE, str(folder), tip).manifests]


def with_fewer_chunks(whole: bytes, said: ManifestFile) -> bytes:
    """Returns the manifest with one bit turned, of the same size, so that by itself it reads well and names less."""
    for bit in range(8 * HEADER, 8 * len(whole)):
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        try:
            found = read_manifest(bytes(changed), ManifestFile(said.id, said.size, None))
        except (CorruptIcechunk, UnsupportedIcechunk):
            continue
        if len(found.ids) + found.inline + found.virtual < said.refs:
            return bytes(changed)
    raise AssertionError("every single bit is noticed")


def leads_out(folder: Path) -> None:
    table_format = IcechunkFormat(ObjectStores())
    files = [file for _, file in table_format.roots(table_format.load("r", str(folder)))]
    means = UnitMeans(table_format.expand, look_up(ObjectStores(), files).of, RealPaths())
    outward(files, means, OwnFolders((f"file://{folder}/",), ()), Walked())


def test_a_manifest_with_fewer_chunks_than_its_snapshot_says_stops_the_look(small: Path, tmp_path: Path) -> None:
    folder = tmp_path / "r"
    shutil.copytree(small, folder)
    leads_out(folder)
    said = max(current_manifests(folder), key=lambda each: each.refs)
    path = folder / "manifests" / said.id
    path.write_bytes(with_fewer_chunks(path.read_bytes(), said))
    with pytest.raises(UnreadableMetadata, match=said.id):
        leads_out(folder)
