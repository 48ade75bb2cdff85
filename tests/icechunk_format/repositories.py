"""What firnline reads of a repository, as sets of names, and what lies in its folder."""

from __future__ import annotations

import json
import struct
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import zstandard

from firnline.formats.icechunk import ids
from firnline.formats.icechunk.reading.manifest import ChunkRefs, ManifestFile
from firnline.formats.icechunk.reading.objects import chunks_at, refuse_unreadable_log, snapshot_at
from firnline.formats.icechunk.reading.repository import IcechunkRepository, read_repository
from firnline.stores.objects import ObjectStores

STORE = ObjectStores()
RECORDED = Path(__file__).parent / "data" / "written-by-2.3.0.tar.xz"
HEADER = 39


@dataclass(frozen=True)
class Needed:
    """Everything that some snapshots need."""

    snapshots: set[str]
    manifests: dict[str, ManifestFile]
    chunks: dict[str, int]
    inline: int
    virtual: int


def referenced(found: IcechunkRepository) -> set[str]:
    """Returns the snapshots that refs lead to."""
    return {each.id for ref in found.refs for each in found.ancestry(ref.snapshot)}


def needed(location: str, snapshots: set[str]) -> Needed:
    manifests: dict[str, ManifestFile] = {}
    for snapshot in snapshots:
        for each in snapshot_at(STORE, location, snapshot).manifests:
            assert manifests.setdefault(each.id, each) == each
    refs = [chunks_at(STORE, location, each) for each in manifests.values()]
    chunks = {name: end for each in refs for name, end in named(each)}
    return Needed(snapshots, manifests, chunks, sum(each.inline for each in refs), sum(each.virtual for each in refs))


def named(refs: ChunkRefs) -> list[tuple[str, int]]:
    return list(zip(ids.names_of(refs.ids), refs.ends.tolist(), strict=True))


def lying(folder: Path, kind: str) -> set[str]:
    """Returns the names of the objects of a kind, those too that nothing needs."""
    below = folder / kind
    return {each.name for each in below.iterdir()} if below.is_dir() else set()


def is_as_answered(folder: Path, said: dict[str, Any]) -> Needed:
    """Returns what the refs of a repository need. Raises AssertionError unless all is as the library says."""
    found = read_repository(STORE, str(folder))
    assert found.spec == said["spec"]
    assert (found.branches, found.tags) == (said["branches"], said["tags"])
    assert sorted(found.deleted_tags) == said["deleted_tags"]
    for tip, line in said["ancestry"].items():
        told = [[each.id, each.parent, each.flushed_us, each.message] for each in found.ancestry(tip)]
        assert told == line
    kept = referenced(found)
    assert kept == set(said["manifests"])
    for snapshot, manifests in said["manifests"].items():
        read = snapshot_at(STORE, str(folder), snapshot).manifests
        assert sorted([each.id, each.size, each.refs] for each in read) == manifests
    return is_as_collected(folder, needed(str(folder), kept), said)


def is_as_collected(folder: Path, wanted: Needed, said: dict[str, Any]) -> Needed:
    """Raises AssertionError unless the library would collect exactly what is not needed, and counts the same bytes."""
    assert wanted.snapshots <= lying(folder, "snapshots")
    assert wanted.manifests.keys() <= lying(folder, "manifests")
    assert wanted.chunks.keys() <= lying(folder, "chunks")
    garbage = (
        len(lying(folder, "snapshots") - wanted.snapshots),
        len(lying(folder, "manifests") - wanted.manifests.keys()),
        len(lying(folder, "chunks") - wanted.chunks.keys()),
    )
    assert list(garbage) == said["garbage"]
    sizes = {name: (folder / "chunks" / name).stat().st_size for name in wanted.chunks}
    assert sizes == wanted.chunks
    assert sum(sizes.values()) == said["bytes"][0]
    for log in lying(folder, "transactions"):
        refuse_unreadable_log(STORE, str(folder), log)
    return wanted


def unpacked(folder: Path) -> list[Path]:
    """Returns the repositories that a later library wrote than this interpreter may have."""
    with tarfile.open(RECORDED) as archive:
        archive.extractall(folder, filter="data")
    return sorted((folder / "recorded").iterdir())


def answered(folder: Path) -> dict[str, Any]:
    said: dict[str, Any] = json.loads((folder / "answers.json").read_text())
    return said


def body_of(data: bytes) -> bytes:
    return zstandard.ZstdDecompressor().decompressobj().decompress(data[HEADER:])


def packed(data: bytes, body: bytes) -> bytes:
    """Returns the object with another body."""
    return data[:HEADER] + zstandard.ZstdCompressor(level=1).compress(body)


def say_one_more(folder: Path) -> None:
    """Has the snapshot of a ref say of a manifest, and of those like it, that it has one reference more than it has: as
    if the manifest had been cut.
    """
    tip = next(ref.snapshot for ref in read_repository(STORE, str(folder)).refs)
    said = max(snapshot_at(STORE, str(folder), tip).manifests, key=lambda each: each.refs or 0)
    assert said.refs
    path = folder / "snapshots" / tip
    whole = path.read_bytes()
    body, counted = body_of(whole), struct.pack("<QI", said.size, said.refs)
    assert counted in body
    path.write_bytes(packed(whole, body.replace(counted, struct.pack("<QI", said.size, said.refs + 1))))


def rows(refs: ChunkRefs) -> list[bytes]:
    return sorted(each.tobytes() for each in np.ascontiguousarray(refs.ids))
