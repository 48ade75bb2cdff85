"""Objects that were cut, lengthened or changed: refused by name, or read whole. Never fewer chunks than there are."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firnline.errors import FirnlineError, UnreadableMetadata, UnsupportedFormat
from firnline.formats.icechunk.reading import envelope
from firnline.formats.icechunk.reading.damage import CorruptIcechunk, UnsupportedIcechunk
from firnline.formats.icechunk.reading.manifest import ManifestFile, read_manifest
from firnline.formats.icechunk.reading.objects import chunks_at, refuse_unreadable_log, snapshot_at
from firnline.formats.icechunk.reading.repo import RepoObject, read_repo
from firnline.formats.icechunk.reading.repository import read_repository
from firnline.formats.icechunk.reading.snapshot import read_snapshot
from firnline.formats.icechunk.reading.transaction import refuse_other_log
from harness.lanes import by_lane

from .repositories import HEADER, STORE, body_of, lying, packed, rows

TIMES = settings(
    max_examples=by_lane(100, 100, 20_000), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
REFUSED = (CorruptIcechunk, UnsupportedIcechunk)


@cache
def manifests_of(folder: Path) -> list[tuple[bytes, ManifestFile]]:
    files = {each for name in snapshots_of(folder) for each in snapshot_at(STORE, str(folder), name).manifests}
    return [((folder / "manifests" / each.id).read_bytes(), each) for each in sorted(files, key=lambda each: each.id)]


@cache
def snapshots_of(folder: Path) -> list[str]:
    return sorted(read_repository(STORE, str(folder)).snapshots)


@pytest.fixture
def repositories(recorded: list[Path], small: Path) -> list[Path]:
    return [*recorded, small]


def edited(data: st.DataObject, whole: bytes) -> bytes:
    """Returns the bytes with one to three bits turned, cut short, or with more at the end."""
    how = data.draw(st.sampled_from(["turned", "cut", "longer"]))
    if how == "cut":
        return whole[: data.draw(st.integers(0, len(whole) - 1))]
    if how == "longer":
        return whole + data.draw(st.binary(min_size=1, max_size=40))
    changed = bytearray(whole)
    for bit in data.draw(st.lists(st.integers(0, 8 * len(whole) - 1), min_size=1, max_size=3, unique=True)):
        changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def changed(data: st.DataObject, whole: bytes) -> bytes:
    """Returns the object, changed as it lies in the store or, what no decompressor can notice, inside of its frame."""
    if data.draw(st.booleans()):
        return edited(data, whole)
    return packed(whole, edited(data, body_of(whole)))


@TIMES
@given(data=st.data())
def test_a_changed_manifest_never_has_fewer_chunks(repositories: list[Path], data: st.DataObject) -> None:
    """An id may be another one: then a chunk is named that is not there, which whoever collects must refuse."""
    folder = data.draw(st.sampled_from(repositories))
    whole, said = data.draw(st.sampled_from(manifests_of(folder)))
    other = changed(data, whole)
    sized = ManifestFile(said.id, len(other), said.refs) if data.draw(st.booleans()) else said
    try:
        found = read_manifest(other, sized)
    except REFUSED:
        return
    real = read_manifest(whole, said)
    assert (len(found.ids), found.inline, found.virtual) == (len(real.ids), real.inline, real.virtual)
    lost = set(rows(real)) - set(rows(found))
    assert not lost & {bytes(each) for each in found.ids}
    assert len(set(rows(found)) - set(rows(real))) == len(lost)


@TIMES
@given(data=st.data())
def test_a_changed_snapshot_never_has_fewer_manifests(repositories: list[Path], data: st.DataObject) -> None:
    folder = data.draw(st.sampled_from(repositories))
    name = data.draw(st.sampled_from(snapshots_of(folder)))
    whole = (folder / "snapshots" / name).read_bytes()
    try:
        found = read_snapshot(changed(data, whole), name)
    except REFUSED:
        return
    real = {each.id for each in read_snapshot(whole, name).manifests}
    unknown = {each.id for each in found.manifests} - lying(folder, "manifests")
    assert len(found.manifests) == len(real)
    assert real - {each.id for each in found.manifests} == set() or unknown


@TIMES
@given(data=st.data())
def test_a_changed_repo_never_has_fewer_snapshots(recorded: list[Path], data: st.DataObject) -> None:
    folder = data.draw(st.sampled_from(recorded))
    whole = (folder / "repo").read_bytes()
    try:
        found = read_repo(changed(data, whole))
    except REFUSED:
        return
    real = read_repo(whole)
    assert counts(found) == counts(real)
    assert set(found.snapshots) - set(real.snapshots) or set(found.snapshots) == set(real.snapshots)


def test_no_list_stands_for_another(recorded: list[Path]) -> None:
    """One bit, and the list of deleted tags, which is empty, was that of the branches."""
    whole = (recorded[4] / "repo").read_bytes()
    body = bytearray(body_of(whole))
    body[52] ^= 4
    with pytest.raises(CorruptIcechunk, match="two of its lists lie in the same place"):
        read_repo(packed(whole, bytes(body)))


def counts(repo: RepoObject) -> tuple[int, ...]:
    return len(repo.snapshots), len(repo.branches), len(repo.tags), len(repo.deleted_tags)


@TIMES
@given(data=st.data())
def test_a_changed_log_is_this_log_or_none(small: Path, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(lying(small, "transactions"))))
    whole = (small / "transactions" / name).read_bytes()
    try:
        refuse_other_log(changed(data, whole), name)
    except REFUSED:
        return


def lowered(whole: bytes) -> Iterator[bytes]:
    """Yields the object with each number inside of it made smaller, which may be the length of a list."""
    words = np.frombuffer(body_of(whole)[: len(body_of(whole)) // 4 * 4], "<u4")
    for at in np.flatnonzero((words > 0) & (words < 4_096)).tolist()[:: by_lane(3, 3, 1)]:
        for value in {0, int(words[at]) // 2, int(words[at]) - 1}:
            other = words.copy()
            other[at] = value
            yield packed(whole, other.tobytes() + body_of(whole)[4 * len(words) :])


def test_no_smaller_number_hides_a_manifest(small: Path) -> None:
    name = max(snapshots_of(small), key=lambda each: len(read_snapshot(bytes_of(small, each), each).manifests))
    real = {each.id for each in read_snapshot(bytes_of(small, name), name).manifests}
    refused = 0
    for other in lowered(bytes_of(small, name)):
        try:
            assert {each.id for each in read_snapshot(other, name).manifests} == real
        except REFUSED:
            refused += 1
    assert refused > 20


def bytes_of(folder: Path, snapshot: str) -> bytes:
    return (folder / "snapshots" / snapshot).read_bytes()


def test_no_smaller_number_hides_a_ref_or_a_snapshot(recorded: list[Path]) -> None:
    tagged = [data for folder in recorded if read_repo(data := (folder / "repo").read_bytes()).tags]
    whole = min(tagged, key=len)
    real, refused = read_repo(whole), 0
    for other in lowered(whole):
        try:
            assert counts(read_repo(other)) == counts(real)
        except REFUSED:
            refused += 1
    assert refused > 20


def test_no_smaller_number_hides_a_chunk(small: Path) -> None:
    whole, said = max(manifests_of(small), key=lambda each: each[1].refs)
    real = read_manifest(whole, said)
    for other in lowered(whole):
        try:
            assert len(read_manifest(other, ManifestFile(said.id, len(other), said.refs)).ids) == len(real.ids)
        except REFUSED:
            continue


def test_a_reference_that_leads_to_another_one_is_refused(small: Path) -> None:
    """The list is as long as before, every table of it is sound, and one chunk is not named any more."""
    whole, said = max(manifests_of(small), key=lambda each: each[1].refs)
    body = bytearray(body_of(whole))
    first, second = places_of_refs(bytes(body))[:2]
    leads_to = second + struct.unpack_from("<I", body, second)[0]
    struct.pack_into("<I", body, first, leads_to - first)
    other = packed(whole, bytes(body))
    with pytest.raises(CorruptIcechunk, match="lie in the same place"):
        read_manifest(other, ManifestFile(said.id, len(other), said.refs))


def places_of_refs(body: bytes) -> list[int]:
    """Returns where in the body of a manifest the references of the first array begin, read by hand."""
    arrays = followed(body, field_of(body, followed(body, 0), 1))
    refs = followed(body, field_of(body, followed(body, arrays + 4), 1))
    return [refs + 4 + 4 * number for number in range(struct.unpack_from("<I", body, refs)[0])]


def followed(body: bytes, at: int) -> int:
    return int(at + struct.unpack_from("<I", body, at)[0])


def field_of(body: bytes, table: int, number: int) -> int:
    vtable = table - struct.unpack_from("<i", body, table)[0]
    return int(table + struct.unpack_from("<H", body, vtable + 4 + 2 * number)[0])


def put(path: Path, at: int, byte: int) -> bytes:
    data = bytearray(path.read_bytes())
    data[at] = byte
    return bytes(data)


BAD: dict[str, tuple[type[FirnlineError], str, Callable[[Path], bytes]]] = {
    "magic": (UnreadableMetadata, "does not begin", lambda path: put(path, 5, 0)),
    "version": (UnsupportedFormat, "version 3", lambda path: put(path, 36, 3)),
    "type": (UnreadableMetadata, "of type 5", lambda path: put(path, 37, 5)),
    "compression": (UnsupportedFormat, "compression 0", lambda path: put(path, 38, 0)),
    "empty": (UnreadableMetadata, "fewer than its header", lambda path: b""),
    "cut": (UnreadableMetadata, "", lambda path: path.read_bytes()[:-3]),
    "followed": (UnreadableMetadata, "", lambda path: path.read_bytes() + b"\0"),
    "unmarked": (UnreadableMetadata, "", lambda path: packed(path.read_bytes(), b"\0" * 64)),
}


@pytest.mark.parametrize("kind", ["snapshots", "manifests", "transactions"])
@pytest.mark.parametrize("how", BAD)
def test_bad_objects_are_refused_by_name(small: Path, tmp_path: Path, kind: str, how: str) -> None:
    error, told, make = BAD[how]
    name = min(lying(small, kind))
    place = tmp_path / kind
    place.mkdir()
    (place / name).write_bytes(make(small / kind / name))
    with pytest.raises(error, match=f"{kind}/{name}.*{told}"):
        open_it(tmp_path, kind, name)


def open_it(folder: Path, kind: str, name: str) -> None:
    match kind:
        case "snapshots":
            snapshot_at(STORE, str(folder), name)
        case "manifests":
            size = (folder / kind / name).stat().st_size if (folder / kind / name).exists() else 1
            chunks_at(STORE, str(folder), ManifestFile(name, size, 1))
        case _:
            refuse_unreadable_log(STORE, str(folder), name)


@pytest.mark.parametrize("kind", ["snapshots", "manifests", "transactions"])
def test_missing_objects_are_refused_by_name(tmp_path: Path, kind: str) -> None:
    with pytest.raises(UnreadableMetadata, match=f"is missing: .*{kind}/1CECHNKREP0F1RSTCMT0"):
        open_it(tmp_path, kind, "1CECHNKREP0F1RSTCMT0")


def test_an_object_under_the_name_of_another_is_refused(small: Path) -> None:
    one, other, *_ = sorted(lying(small, "snapshots"))
    with pytest.raises(CorruptIcechunk, match=f"its id is {one}"):
        read_snapshot((small / "snapshots" / one).read_bytes(), other)
    data, said = manifests_of(small)[0]
    with pytest.raises(CorruptIcechunk, match=f"its id is {said.id}"):
        read_manifest(data, ManifestFile(other, said.size, said.refs))


def test_a_manifest_that_is_not_as_the_snapshot_says_is_refused(small: Path) -> None:
    data, said = manifests_of(small)[0]
    with pytest.raises(CorruptIcechunk, match="bytes, a snapshot says"):
        read_manifest(data, ManifestFile(said.id, said.size + 1, said.refs))
    with pytest.raises(CorruptIcechunk, match="references, a snapshot says"):
        read_manifest(data, ManifestFile(said.id, said.size, said.refs + 1))


@pytest.mark.parametrize("sized", [True, False])
def test_a_small_object_that_unpacks_to_gigabytes_is_refused(small: Path, sized: bool) -> None:
    header = (small / "snapshots" / min(lying(small, "snapshots"))).read_bytes()[:HEADER]
    writer = zstandard.ZstdCompressor(level=1).compressobj(size=3 << 30 if sized else -1)
    piece = bytes(1 << 20)
    bomb = b"".join(writer.compress(piece) for _ in range(3 << 10 if sized else 100)) + writer.flush()
    with pytest.raises(CorruptIcechunk, match="unpack"):
        envelope.opened(header + bomb, envelope.ObjectType.SNAPSHOT)


def test_frames_without_a_size_are_read_as_those_with_one(small: Path) -> None:
    data = (small / "snapshots" / min(lying(small, "snapshots"))).read_bytes()
    body = body_of(data)
    for kind in (zstandard.ZstdCompressor(write_content_size=False), zstandard.ZstdCompressor(write_checksum=True)):
        assert envelope.opened(data[:HEADER] + kind.compress(body), envelope.ObjectType.SNAPSHOT).body == body
        with pytest.raises(CorruptIcechunk):
            envelope.opened(data[:HEADER] + kind.compress(body) + os.urandom(3), envelope.ObjectType.SNAPSHOT)
