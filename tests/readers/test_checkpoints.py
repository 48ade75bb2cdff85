"""Checkpoints as they are read, on a real file system: what a query goes on from, or a refusal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline.app.checkpoints import StoredCheckpoints
from firnline.errors import PolicyError, RefusedForSafety, UnreadableMetadata
from firnline.formats.iceberg.readers.offsets import offset_in
from firnline.formats.iceberg.table import IcebergFormat
from firnline.ops.readers.checkpoints import last_done
from firnline.ops.readers.finding import FoundReaders, find_readers
from firnline.policy.values import parse_setting
from firnline.stores.objects import ObjectStores
from firnline.stores.ranges import ObjectRanges
from tests.readers.written import HEAD, WrittenCheckpoint, offset


def found(place: Path | str) -> FoundReaders:
    store = ObjectStores({})
    return find_readers(StoredCheckpoints(lambda: store, lambda: ObjectRanges({})), IcebergFormat(store), [str(place)])


@pytest.fixture
def written(tmp_path: Path) -> WrittenCheckpoint:
    (tmp_path / "job").mkdir()
    return WrittenCheckpoint(tmp_path / "job")


def test_an_empty_folder_has_no_reader_and_says_so(written: WrittenCheckpoint) -> None:
    there = found(written.folder)
    assert there.readers == ()
    assert "it keeps nothing" in there.notes[0]


@pytest.mark.parametrize("place", ["gone", "gone/*", "none-*", "job/x"])
def test_a_place_that_is_not_there_stops(written: WrittenCheckpoint, place: str) -> None:
    with pytest.raises(RefusedForSafety, match="missed") as refused:
        found(written.folder.parent / place)
    assert "take it out of `readers`" in str(refused.value.hint)


def test_a_folder_of_checkpoints_is_none_itself(written: WrittenCheckpoint) -> None:
    written.begin(1)
    with pytest.raises(RefusedForSafety, match="is no checkpoint") as refused:
        found(written.folder.parent)
    assert f"write {written.folder.parent}/*" in str(refused.value.hint)
    assert [each.at for each in found(written.folder.parent / "*").readers] == ["1"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("offsets/1", ""),
        ("offsets/1", HEAD),
        ("offsets/1", HEAD + '{"version":1,"snapsh'),
        ("offsets/1", HEAD.replace("v1", "v2") + offset(1)),
        ("offsets/1", HEAD + offset(1, version=2)),
        ("offsets/1", HEAD + offset(1, position=None)),
        ("offsets/1", HEAD + "\x00\x01"),
        ("offsets/1", b"\xff\xfe"),
        ("offsets/1", HEAD + '{"topic":{"0":23}}'),
        ("sources/0/offsets/0", offset(1)[:-4]),
    ],
)
def test_what_is_not_understood_stops(written: WrittenCheckpoint, name: str, text: str | bytes) -> None:
    written.begin(1).begin(1, 1).batch(0, 1, 1).batch(1, 1, 1).write(name, text)
    with pytest.raises(UnreadableMetadata, match="is not understood") as refused:
        found(written.folder)
    assert "take it out of `readers`" in str(refused.value.hint)


def test_a_batch_before_which_the_offsets_are_lost_stops(written: WrittenCheckpoint) -> None:
    written.begin(1).batch(7, 2, committed=False)
    with pytest.raises(UnreadableMetadata, match="batch 7 has no commit"):
        found(written.folder)


@pytest.mark.parametrize("leads_to", ["0", "nothing"])
def test_a_file_that_cannot_be_opened_stops(written: WrittenCheckpoint, leads_to: str) -> None:
    """A link in a circle, and one to nothing: root may read all else."""
    written.begin(1).batch(0, 1)
    (written.folder / "offsets/0").unlink()
    (written.folder / "offsets/0").symlink_to(leads_to)
    with pytest.raises(UnreadableMetadata, match=f"the checkpoint {written.folder} ") as refused:
        found(written.folder)
    assert refused.value.hint


def test_temporary_files_and_checksums_are_no_batches(written: WrittenCheckpoint) -> None:
    written.begin(1).batch(0, 2)
    for name in (".1.crc", ".1.5bb0.tmp", "1.tmp", "x"):
        written.write(f"offsets/{name}", "half").write(f"commits/{name}", "half")
    assert [each.at for each in found(written.folder).readers] == ["2"]


@pytest.mark.parametrize("place", ["checkpoints/job", "s3://jobs/*/job", "/jobs/../job", ""])
def test_a_place_that_means_nothing_is_refused(place: str) -> None:
    with pytest.raises(PolicyError, match="readers: "):
        parse_setting("readers", [place], "readers")


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-1, 2**31 - 1), st.booleans(), st.data())
def test_an_offset_is_read_as_it_was_written_and_none_that_was_cut(
    snapshot: int, position: int, scan_all: bool, data: st.DataObject
) -> None:
    text = offset(snapshot, position=position, scan_all_files=scan_all)
    read = offset_in(text)
    assert read is not None
    assert read.snapshot == (None if snapshot == -1 else str(snapshot))
    cut = text[: data.draw(st.integers(0, len(text) - 1))]
    with pytest.raises(ValueError, match="line 1 column"):
        offset_in(cut)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(["version", "position", "scan_all_files", "topic"]), JSON), JSON)
def test_an_offset_is_whole_or_refused_or_of_another_source(said: dict[str, object], snapshot: object) -> None:
    assert offset_in(json.dumps(said)) is None
    try:
        read = offset_in(json.dumps({**said, "snapshot_id": snapshot}))
    except ValueError:
        return
    assert read is not None
    assert type(snapshot) is int
    assert (said["version"], type(said["position"]), type(said["scan_all_files"])) == (1, int, bool)


@given(st.sets(st.integers(0, 12)), st.sets(st.integers(0, 12)))
def test_a_query_never_goes_on_from_an_earlier_batch_than_is_kept(offsets: set[int], commits: set[int]) -> None:
    """Spark goes on after its last batch if that is the last commit; else it runs it again, from the one before."""
    ours = last_done(offsets, commits)
    if not offsets:
        assert ours is None
        return
    last = max(offsets)
    theirs = last if max(commits, default=-1) == last else last - 1
    if ours is None:
        assert theirs not in offsets or theirs > max((each for each in commits if each < last), default=-1)
    else:
        assert ours in offsets
        assert ours <= theirs


@given(st.integers(0, 5), st.integers(1, 5), st.booleans())
def test_of_an_orderly_log_nothing_is_kept_that_spark_does_not_need(first: int, many: int, is_done: bool) -> None:
    offsets = set(range(first, first + many))
    last = max(offsets)
    theirs = last if is_done else last - 1
    expected = theirs if theirs in offsets else None
    assert last_done(offsets, offsets if is_done else offsets - {last}) == expected
