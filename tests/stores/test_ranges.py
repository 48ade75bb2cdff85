"""Listing in pieces: together they are exactly what one listing of the store shows, whatever the keys are called."""

from __future__ import annotations

import os
import pickle
import time
import tracemalloc
from collections.abc import Iterator
from itertools import count, pairwise
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firnline.errors import StoreError
from firnline.model.locations import join
from firnline.ports.listings import LISTED_COLUMNS, KeyRange, ListRanges
from firnline.stores.bucket_ranges import BucketRanges
from firnline.stores.buckets import Buckets
from firnline.stores.objects import ObjectStores
from firnline.stores.ranges import ObjectRanges
from firnline.testing.stores import AWKWARD_NAMES
from harness.servers import Server
from harness.servers.s3 import client, make_bucket

FULL = bool(os.environ.get("FIRNLINE_FULL"))
FOLDERS = count()
Row = tuple[str, int, int | None, str | None]

segments = st.one_of(
    st.sampled_from([*"abé雪~ -.#%+0", "part-00000", "part-00001", "a%20b", "day=1", "\ue000", "\U0001f40c"]),
    st.text(st.characters(blacklist_categories=["Cs", "Cc"], blacklist_characters="/"), min_size=1, max_size=4),
).filter(lambda name: name not in (".", ".."))
keys = st.lists(segments, min_size=1, max_size=4).map("/".join)


def rows(source: ListRanges, pieces: list[KeyRange]) -> list[Row]:
    """Returns every row that the pieces yield, by key; one that comes twice is there twice."""
    batches = [batch for piece in pieces for batch in source.batches(piece)]
    assert all(tuple(batch.schema.names) == LISTED_COLUMNS for batch in batches)
    return sorted(tuple(row.values()) for batch in batches for row in batch.to_pylist())


def listed(prefix: str, store: ObjectStores | None = None) -> list[Row]:
    found = (store or ObjectStores()).list(prefix)
    return sorted((each.key, each.size, each.modified_ms, each.etag) for each in found)


def names(found: list[Row]) -> list[tuple[str, int]]:
    return [(key, size) for key, size, *_ in found]


@settings(max_examples=3_000 if FULL else 200, deadline=None)
@given(st.sets(keys, max_size=25), st.integers(1, 12), st.integers(1, 4), st.sampled_from(["/t", "/t/", "", "/"]))
def test_pieces_of_a_bucket_are_disjoint_and_complete(found: set[str], wanted: int, page: int, folder: str) -> None:
    root = f"memory://{uuid4().hex}"
    store = ObjectStores()
    for key in found:
        store.put(f"{root}/t/{key}", key.encode())
        store.put(f"{root}/t2/{key}", b"")
    source = BucketRanges(Buckets(), page)
    pieces = source.split(root + folder, wanted)
    assert len(pieces) <= 2 * wanted
    assert names(rows(source, pieces)) == names(listed(root + folder))


@settings(max_examples=500 if FULL else 60, deadline=None)
@given(
    found=st.sets(keys, max_size=25), wanted=st.integers(1, 12), cuts=st.lists(keys, max_size=3), local=st.booleans()
)
def test_any_cuts_give_disjoint_and_complete_pieces(
    found: set[str], wanted: int, cuts: list[str], local: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = f"file://{tmp_path_factory.getbasetemp()}/cuts-{next(FOLDERS)}" if local else f"memory://{uuid4().hex}"
    _put_all(root, found)
    edges = [None, *sorted({f"{root}/t/{cut}" for cut in cuts}), None]
    pieces = [KeyRange(f"{root}/t", True, *pair) for pair in pairwise(edges)]
    assert names(rows(ObjectRanges(), pieces)) == names(listed(f"{root}/t"))
    split = ObjectRanges().split(f"{root}/t", wanted)
    assert names(rows(ObjectRanges(), split)) == names(listed(f"{root}/t"))


def test_awkward_names_keep_every_character(tmp_path: Path) -> None:
    root = f"file://{tmp_path}/t"
    for name in AWKWARD_NAMES:
        ObjectStores().put(join(root, name), b"x")
    for wanted in (1, 3, 100):
        assert rows(ObjectRanges(), ObjectRanges().split(root, wanted)) == listed(root)


def test_very_many_folders_share_pieces(tmp_path: Path) -> None:
    for number in range(50):
        ObjectStores().put(f"{tmp_path}/t/data/{number}/x", b"x")
    ObjectStores().put(f"{tmp_path}/t/data/30.x", b"x")
    pieces = ObjectRanges().split(f"{tmp_path}/t", 5)
    assert 5 <= len(pieces) <= 10
    assert rows(ObjectRanges(), pieces) == listed(f"{tmp_path}/t")
    each = [len(rows(ObjectRanges(), [piece])) for piece in pieces]
    assert max(each) <= 11


def test_flat_keys_are_cut_evenly_enough() -> None:
    """One folder with nothing but files, named as Spark names them, is still read by many."""
    root = f"memory://{uuid4().hex}/t"
    for number in range(600):
        ObjectStores().put(f"{root}/data/part-{number:05d}-x.parquet", b"")
    source = BucketRanges(Buckets(), page=10)
    pieces = source.split(root, 16)
    shares = [len(rows(source, [piece])) for piece in pieces]
    assert sum(shares) == 600
    assert max(shares) <= 100


def test_a_folder_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    for root in (f"{tmp_path}/none", f"memory://{uuid4().hex}/none"):
        assert rows(ObjectRanges(), ObjectRanges().split(root, 8)) == []


def test_links_to_folders_are_not_followed_and_links_to_files_are_files(tmp_path: Path) -> None:
    (tmp_path / "t" / "real").mkdir(parents=True)
    (tmp_path / "t" / "real" / "x").write_bytes(b"x")
    (tmp_path / "t" / "folder-link").symlink_to(tmp_path / "t" / "real")
    (tmp_path / "t" / "file-link").symlink_to(tmp_path / "t" / "real" / "x")
    found = names(rows(ObjectRanges(), ObjectRanges().split(str(tmp_path / "t"), 8)))
    assert found == [(f"{tmp_path}/t/file-link", 1), (f"{tmp_path}/t/real/x", 1)]


def test_a_folder_that_vanishes_after_the_split_takes_only_its_own_files(tmp_path: Path) -> None:
    for name in ("a/x", "b/x"):
        ObjectStores().put(f"{tmp_path}/t/{name}", b"x")
    pieces = ObjectRanges().split(f"{tmp_path}/t", 8)
    (tmp_path / "t" / "a" / "x").unlink()
    (tmp_path / "t" / "a").rmdir()
    assert names(rows(ObjectRanges(), pieces)) == [(f"{tmp_path}/t/b/x", 1)]


def test_a_folder_that_cannot_be_read_stops_the_listing(tmp_path: Path) -> None:
    """A path through a name that is too long fails for everybody, also for root."""
    piece = KeyRange(f"{tmp_path}/{'x' * 300}")
    with pytest.raises(StoreError, match="xxx"):
        rows(ObjectRanges(), [piece])


def test_local_times_are_milliseconds(tmp_path: Path) -> None:
    ObjectStores().put(f"{tmp_path}/t/x", b"x")
    os.utime(tmp_path / "t" / "x", ns=(4_000_000_000_123_456_789, 4_000_000_000_123_456_789))
    ((_, _, modified, tag),) = rows(ObjectRanges(), ObjectRanges().split(f"{tmp_path}/t", 1))
    assert (modified, tag) == (4_000_000_000_123, ObjectStores().head(f"{tmp_path}/t/x").etag)


def test_a_local_file_is_as_old_as_its_last_change_whatever_time_it_was_given(tmp_path: Path) -> None:
    began = time.time_ns() // 1_000_000 - 1_000
    ObjectStores().put(f"{tmp_path}/t/x", b"x")
    os.utime(tmp_path / "t" / "x", ns=(1_700_000_000_123_456_789, 1_700_000_000_123_456_789))
    ((_, _, modified, _),) = rows(ObjectRanges(), ObjectRanges().split(f"{tmp_path}/t", 1))
    assert modified == ObjectStores().head(f"{tmp_path}/t/x").modified_ms
    assert modified >= began


class Jumbled(BucketRanges):
    """A store that starts a listing where it is told to and then goes on in an order of its own."""

    def _listed(self, piece: KeyRange) -> Iterator[pa.RecordBatch]:
        for batch in super()._listed(piece):
            yield batch.take(list(reversed(range(len(batch)))))


def test_a_store_without_order_is_refused_rather_than_cut_short() -> None:
    root = f"memory://{uuid4().hex}/t"
    for name in "abc":
        ObjectStores().put(f"{root}/{name}", b"")
    with pytest.raises(StoreError, match="in order"):
        rows(Jumbled(Buckets()), [KeyRange(root, True, None, f"{root}/b")])
    assert len(rows(Jumbled(Buckets()), [KeyRange(root)])) == 3, "whole folders need no order"


class TestS3:
    """The same over the wire. moto sends pages of a thousand, as S3 does."""

    @pytest.fixture
    def served(self, moto_server: Server) -> Server:
        return moto_server

    @pytest.fixture
    def root(self, served: Server) -> str:
        return make_bucket(served, f"ranges-{uuid4().hex}")

    def put(self, served: Server, root: str, *found: str) -> None:
        boto = client(served)
        for name in found:
            boto.put_object(Bucket=root.removeprefix("s3://"), Key=name, Body=b"x")

    def test_pieces_are_the_listing(self, served: Server, root: str) -> None:
        self.put(served, root, *(f"t/{name}" for name in AWKWARD_NAMES), "t2/x", *(f"t/{n:03d}" for n in range(30)))
        whole = listed(f"{root}/t", ObjectStores(served.settings))
        for page in (5, 1000):
            source = BucketRanges(Buckets(served.settings), page)
            pieces = source.split(f"{root}/t", 8)
            assert (len(pieces) > 4) == (page == 5)
            assert rows(source, pieces) == whole

    def test_a_pickled_copy_lists_too(self, served: Server, root: str) -> None:
        self.put(served, root, "t/a", "t/b/c")
        there = pickle.loads(pickle.dumps(ObjectRanges(served.settings)))
        assert names(rows(there, there.split(f"{root}/t", 4))) == [(f"{root}/t/a", 1), (f"{root}/t/b/c", 1)]

    @pytest.mark.parametrize("key", ["t/a//x", "t//x", "t/./x", "t/../x"])
    def test_a_key_that_cannot_be_named_stops_the_listing(self, served: Server, root: str, key: str) -> None:
        self.put(served, root, "t/a/x", "t/x", key)
        with pytest.raises(StoreError, match=r"invalid path|empty path segment|illegal"):
            rows(ObjectRanges(served.settings), [KeyRange(f"{root}/t")])

    def test_a_folder_marker_is_no_disorder(self, served: Server, root: str) -> None:
        """`t/b/` comes after `t/b-1/x` and is listed as `t/b`."""
        self.put(served, root, "t/a", "t/b-1/x", "t/b/", "t/b/x", "t/c")
        pieces = [KeyRange(f"{root}/t", True, None, f"{root}/t/b/w"), KeyRange(f"{root}/t", True, f"{root}/t/b/w")]
        found = {key for key, *_ in rows(ObjectRanges(served.settings), pieces)}
        assert found == {f"{root}/t/{name}" for name in ("a", "b", "b-1/x", "b/x", "c")}

    def test_a_bucket_that_is_not_there_is_an_error(self, served: Server) -> None:
        with pytest.raises(StoreError, match="no-such-bucket"):
            rows(ObjectRanges(served.settings), [KeyRange("s3://no-such-bucket/t")])


def _put_all(root: str, found: set[str]) -> None:
    """Puts what can be put: on a file system a file is no folder, and names have a length."""
    for key in sorted(found):
        try:
            ObjectStores().put(f"{root}/t/{key}", key.encode())
        except StoreError:
            assert root.startswith("file:")


def test_cutting_a_folder_keeps_nothing_of_its_files(tmp_path: Path) -> None:
    """The driver cuts: a folder of a million chunks must not lie in its memory."""
    chunks = tmp_path / "chunks"
    chunks.mkdir()
    for number in range(5_000):
        (chunks / f"{number:020}").touch()
    tracemalloc.start()
    try:
        assert ObjectRanges().split(str(tmp_path), 128)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 200_000
