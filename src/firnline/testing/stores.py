"""What every store must do: subclass a contract, say where and how, and pytest runs it.

`raw_put` and `raw_get` go around the store under test, so that a store which changes names or bytes both
when it writes and when it reads is found out.
"""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from typing import ClassVar

import pytest

from firnline.errors import AlreadyExists, ObjectChanged, ObjectNotFound, StoreError
from firnline.model.locations import join
from firnline.ports.stores import PutIfAbsent, PutIfMatch, Read, ReadWrite

AWKWARD_NAMES = (
    "a b",
    "a%20b",
    "a%2Fb",
    "100%",
    "a+b",
    "a#b",
    "part#1",
    "a?b",
    "a&b=c",
    "day=2024-01-01/x",
    "grün/雪.parquet",
    "a:b",
    "back\\slash",
    "quote'\"",
    "~tilde",
    ".hidden/.x",
    "_under/x",
    "..double",
    "day=a%20b/x y",
    "star*[x]",
)
RACERS = 4
ROUNDS = 100


class SideDoor:
    """Where the objects are, and a way to them that does not pass the store under test."""

    awkward: ClassVar[tuple[str, ...]] = AWKWARD_NAMES

    @pytest.fixture
    def root(self) -> str:
        raise NotImplementedError("return the location of an empty folder")

    def raw_put(self, key: str, data: bytes) -> None:
        raise NotImplementedError

    def raw_get(self, key: str) -> bytes:
        """Returns the bytes, or raises KeyError if there is no such object."""
        raise NotImplementedError


class ReadContract(SideDoor):
    """The contract of Get, Head and List. Objects are put there by `raw_put`."""

    travels: ClassVar[bool] = True
    """Whether the store can be pickled."""

    @pytest.fixture
    def store(self) -> Read:
        raise NotImplementedError

    def test_reads_the_literal_name(self, store: Read, root: str) -> None:
        for number, name in enumerate(self.awkward):
            self.raw_put(join(root, name), b"%d" % number)
        for number, name in enumerate(self.awkward):
            assert store.get(join(root, name)) == b"%d" % number
            assert store.head(join(root, name)).size == len(b"%d" % number)

    def test_lists_the_literal_names(self, store: Read, root: str) -> None:
        for name in self.awkward:
            self.raw_put(join(root, name), b"x")
        assert sorted(found.key for found in store.list(root)) == sorted(join(root, name) for name in self.awkward)

    def test_lists_inside_an_awkward_folder(self, store: Read, root: str) -> None:
        for name in self.awkward:
            self.raw_put(join(root, name + ".d", "x"), b"x")
        for name in self.awkward:
            assert [found.key for found in store.list(join(root, name + ".d"))] == [join(root, name + ".d", "x")]

    def test_what_is_listed_can_be_read(self, store: Read, root: str) -> None:
        for name in self.awkward:
            self.raw_put(join(root, name), name.encode())
        for found in store.list(root):
            assert join(root, store.get(found.key).decode()) == found.key
            assert store.head(found.key) == found

    def test_head_tells_size_and_a_time_of_this_century(self, store: Read, root: str) -> None:
        self.raw_put(join(root, "x"), b"12345")
        head = store.head(join(root, "x"))
        assert (head.key, head.size) == (join(root, "x"), 5)
        assert head.modified_ms is not None
        assert 1_600_000_000_000 < head.modified_ms < 4_000_000_000_000

    def test_an_empty_object_is_an_object(self, store: Read, root: str) -> None:
        self.raw_put(join(root, "empty"), b"")
        assert store.get(join(root, "empty")) == b""
        assert [found.size for found in store.list(root)] == [0]

    def test_a_missing_object_is_named(self, store: Read, root: str) -> None:
        self.raw_put(join(root, "a"), b"x")
        for missing in ("b", "a/below"):
            with pytest.raises(ObjectNotFound, match="no object .*" + missing):
                store.get(join(root, missing))
            with pytest.raises(ObjectNotFound, match="no object .*" + missing):
                store.head(join(root, missing))

    def test_a_folder_is_no_object(self, store: Read, root: str) -> None:
        self.raw_put(join(root, "folder", "x"), b"x")
        with pytest.raises(ObjectNotFound):
            store.get(join(root, "folder"))
        with pytest.raises(ObjectNotFound):
            store.head(join(root, "folder"))
        with pytest.raises(StoreError):
            store.get(join(root, "folder", "x") + "/")

    def test_a_listing_stays_in_its_folder(self, store: Read, root: str) -> None:
        for name in ("t/x", "t/deep/er/y", "t2/x", "t.x", "s/t/x"):
            self.raw_put(join(root, name), b"x")
        expected = [join(root, "t/deep/er/y"), join(root, "t/x")]
        assert sorted(found.key for found in store.list(join(root, "t"))) == expected
        assert sorted(found.key for found in store.list(join(root, "t") + "/")) == expected

    def test_names_are_those_directly_in_the_folder(self, store: Read, root: str) -> None:
        for name in ("t/x", "t/y#1", "t/deep/er/y", "t2/x", "t.x", "s/t/x"):
            self.raw_put(join(root, name), b"x")
        assert sorted(store.names(join(root, "t"))) == sorted(store.names(join(root, "t") + "/")) == ["x", "y#1"]

    def test_names_are_literal(self, store: Read, root: str) -> None:
        for name in self.awkward:
            self.raw_put(join(root, name), b"x")
        assert sorted(store.names(root)) == sorted(name for name in self.awkward if "/" not in name)

    def test_a_missing_folder_lists_nothing(self, store: Read, root: str) -> None:
        self.raw_put(join(root, "there"), b"x")
        assert list(store.list(join(root, "not-there"))) == []
        assert list(store.list(join(root, "there"))) == []
        assert store.names(join(root, "not-there")) == []
        assert store.names(join(root, "there")) == []

    def test_dots_and_relative_locations_are_refused(self, store: Read, root: str) -> None:
        self.raw_put(join(root, "x"), b"x")
        for bad in (join(root, "folder/../x"), join(root, "./x"), "relative/x"):
            with pytest.raises(StoreError):
                store.get(bad)
            with pytest.raises(StoreError):
                list(store.list(bad))
            with pytest.raises(StoreError):
                store.names(bad)

    def test_an_unknown_scheme_says_what_is_known(self, store: Read) -> None:
        with pytest.raises(StoreError) as refused:
            store.get("gopher://hole/x")
        assert "gopher" in refused.value.message
        assert "s3" in refused.value.hint

    def test_travels_in_a_pickle(self, store: Read, root: str) -> None:
        if not self.travels:
            with pytest.raises(TypeError):
                pickle.dumps(store)
            return
        self.raw_put(join(root, "x"), b"x")
        assert store.get(join(root, "x")) == b"x"
        assert pickle.loads(pickle.dumps(store)).get(join(root, "x")) == b"x"


class StoreContract(ReadContract):
    """The contract of ReadWrite."""

    loses_races: ClassVar[str] = ""
    """Why the server itself cannot keep one winner per race, where that is known of it."""

    @pytest.fixture
    def store(self) -> ReadWrite:
        raise NotImplementedError

    def test_writes_the_literal_name(self, store: ReadWrite, root: str) -> None:
        for name in self.awkward:
            store.put(join(root, name), name.encode())
            store.put_if_absent(join(root, name) + ".new", name.encode())
        for name in self.awkward:
            assert self.raw_get(join(root, name)) == name.encode()
            assert self.raw_get(join(root, name) + ".new") == name.encode()
        assert sum(1 for _ in store.list(root)) == 2 * len(self.awkward)

    def test_put_replaces(self, store: ReadWrite, root: str) -> None:
        store.put(join(root, "x"), b"a longer first")
        store.put(join(root, "x"), b"second")
        assert self.raw_get(join(root, "x")) == b"second"

    def test_put_if_absent_never_replaces(self, store: ReadWrite, root: str) -> None:
        self.raw_put(join(root, "x"), b"first")
        with pytest.raises(AlreadyExists, match="x"):
            store.put_if_absent(join(root, "x"), b"second")
        assert self.raw_get(join(root, "x")) == b"first"
        assert [found.key for found in store.list(root)] == [join(root, "x")]

    def test_what_was_read_is_replaced(self, store: ReadWrite, root: str) -> None:
        self.raw_put(join(root, "x"), b"first")
        seen = store.get_tagged(join(root, "x"))
        assert seen.data == b"first"
        store.put_if_match(join(root, "x"), b"second", seen)
        assert self.raw_get(join(root, "x")) == b"second"

    def test_what_changed_since_it_was_read_is_not_replaced(self, store: ReadWrite, root: str) -> None:
        self.raw_put(join(root, "x"), b"first")
        seen = store.get_tagged(join(root, "x"))
        store.put(join(root, "x"), b"other")
        with pytest.raises(ObjectChanged, match="x"):
            store.put_if_match(join(root, "x"), b"second", seen)
        assert self.raw_get(join(root, "x")) == b"other"

    def test_nothing_is_replaced_where_nothing_is(self, store: ReadWrite, root: str) -> None:
        self.raw_put(join(root, "deep", "x"), b"first")
        seen = store.get_tagged(join(root, "deep", "x"))
        for missing in ("deep/y", "gone/x"):
            with pytest.raises(ObjectNotFound):
                store.get_tagged(join(root, missing))
            with pytest.raises(ObjectChanged):
                store.put_if_match(join(root, missing), b"second", seen)
        assert [found.key for found in store.list(root)] == [join(root, "deep", "x")]

    def test_of_racing_threads_that_read_the_same_one_replaces(self, store: ReadWrite, root: str) -> None:
        with ThreadPoolExecutor(RACERS) as racers:
            self._count_up(racers, store, join(root, "x"))

    def test_of_racing_threads_one_returns(self, store: ReadWrite, root: str) -> None:
        with ThreadPoolExecutor(RACERS) as racers:
            self._race(racers, store, root)

    def test_a_reader_sees_all_or_nothing(self, store: ReadWrite, root: str) -> None:
        with ThreadPoolExecutor(1) as writers:
            self._watch(writers, store, join(root, "x"))
        assert [found.key for found in store.list(root)] == [join(root, "x")]

    def _race(self, racers: Executor, store: ReadWrite, root: str) -> None:
        if self.loses_races:
            pytest.skip(self.loses_races)
        keys = [join(root, f"race-{number}") for number in range(ROUNDS)]
        entered = [racers.submit(_try_puts, store, keys, b"%d" % racer) for racer in range(RACERS)]
        won = [entry.result() for entry in entered]
        for key in keys:
            winners = [racer for racer in range(RACERS) if key in won[racer]]
            assert len(winners) == 1
            assert self.raw_get(key) == b"%d" % winners[0]

    def _count_up(self, racers: Executor, store: ReadWrite, key: str) -> None:
        """Each racer adds one, again and again: a lost condition would lose one."""
        if self.loses_races:
            pytest.skip(self.loses_races)
        self.raw_put(key, b"0")
        for entry in [racers.submit(_add_one, store, key, ROUNDS) for _ in range(RACERS)]:
            entry.result()
        assert self.raw_get(key) == b"%d" % (RACERS * ROUNDS)

    def _watch(self, writers: Executor, store: ReadWrite, key: str) -> None:
        store.put(key, bytes(1 << 20))
        writing = writers.submit(_rewrite, store, key)
        while not writing.done():
            seen = store.get(key)
            assert len(seen) == 1 << 20
            assert seen.count(seen[0]) == 1 << 20
        writing.result()


class SharedStoreContract(StoreContract):
    """The contract of a store whose objects other processes see too."""

    @pytest.fixture(scope="class")
    @classmethod
    def processes(cls) -> Iterator[Executor]:
        """The same for all tests of a class: to start them takes longer than to race."""
        with ProcessPoolExecutor(RACERS, multiprocessing.get_context("spawn")) as started:
            yield started

    def test_of_racing_processes_one_returns(self, store: ReadWrite, root: str, processes: Executor) -> None:
        self._race(processes, store, root)

    def test_of_racing_processes_that_read_the_same_one_replaces(
        self, store: ReadWrite, root: str, processes: Executor
    ) -> None:
        self._count_up(processes, store, join(root, "x"))

    def test_a_reader_in_another_process_sees_all_or_nothing(
        self, store: ReadWrite, root: str, processes: Executor
    ) -> None:
        self._watch(processes, store, join(root, "x"))


def _try_puts(store: PutIfAbsent, keys: Sequence[str], data: bytes) -> set[str]:
    """Returns the keys that this racer won. All race through the same keys, so they keep meeting."""
    return {key for key in keys if _try_put(store, key, data)}


def _try_put(store: PutIfAbsent, key: str, data: bytes) -> bool:
    try:
        store.put_if_absent(key, data)
    except AlreadyExists:
        return False
    return True


def _add_one(store: PutIfMatch, key: str, times: int) -> None:
    while times:
        seen = store.get_tagged(key)
        try:
            store.put_if_match(key, b"%d" % (int(seen.data) + 1), seen)
        except ObjectChanged:
            continue
        times -= 1


def _rewrite(store: ReadWrite, key: str) -> None:
    for number in range(40):
        store.put(key, bytes([number % 2]) * (1 << 20))
