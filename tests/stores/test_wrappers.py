"""What each wrapper adds or takes away, over real files."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from firnline.errors import AlreadyExists, ObjectNotFound, OutcomeUnknown, PermanentStoreError, StoreError
from firnline.patience import Patience
from firnline.ports.stores import ObjectMeta, ReadWrite, TaggedObject
from firnline.stores.objects import ObjectStores
from firnline.stores.wrappers.read_only import ReadOnly
from firnline.stores.wrappers.retry import Retrying
from firnline.testing.counting import Counting, CountingLog

QUICK = Patience(attempts=4, base_delay_s=0.0001)


@dataclass
class Faulty:
    """Real files behind a line that breaks: before the next call arrives, or after it did its work."""

    before: list[StoreError] = field(default_factory=list)
    after: list[StoreError] = field(default_factory=list)
    store: ReadWrite = field(default_factory=ObjectStores)

    def _break(self, when: list[StoreError]) -> None:
        if when:
            raise when.pop(0)

    def get(self, key: str) -> bytes:
        self._break(self.before)
        return self.store.get(key)

    def head(self, key: str) -> ObjectMeta:
        self._break(self.before)
        return self.store.head(key)

    def list(self, prefix: str) -> Iterator[ObjectMeta]:
        self._break(self.before)
        for found in self.store.list(prefix):
            yield found
            self._break(self.after)

    def names(self, folder: str) -> Sequence[str]:
        self._break(self.before)
        return self.store.names(folder)

    def links(self, folder: str) -> Sequence[str]:
        self._break(self.before)
        return self.store.links(folder)

    def put(self, key: str, data: bytes) -> None:
        self._break(self.before)
        self.store.put(key, data)
        self._break(self.after)

    def put_if_absent(self, key: str, data: bytes) -> None:
        self._break(self.before)
        self.store.put_if_absent(key, data)
        self._break(self.after)

    def get_tagged(self, key: str) -> TaggedObject:
        self._break(self.before)
        return self.store.get_tagged(key)

    def put_if_match(self, key: str, data: bytes, seen: TaggedObject) -> None:
        self._break(self.before)
        self.store.put_if_match(key, data, seen)
        self._break(self.after)


def slow_down(times: int) -> list[StoreError]:
    return [StoreError(f"slow down {number}") for number in range(times)]


class TestRetrying:
    def test_every_verb_outlasts_what_passes(self, tmp_path: Path) -> None:
        key = f"{tmp_path}/t/x"
        Retrying(Faulty(before=slow_down(3)), QUICK).put(key, b"x")
        assert Retrying(Faulty(before=slow_down(3)), QUICK).get(key) == b"x"
        assert Retrying(Faulty(before=slow_down(3)), QUICK).head(key).size == 1
        listing = Retrying(Faulty(before=slow_down(3)), QUICK).list(f"{tmp_path}/t")
        assert [found.key for found in listing] == [key]

    def test_gives_up_with_the_last_failure(self, tmp_path: Path) -> None:
        faulty = Faulty(before=slow_down(9))
        with pytest.raises(StoreError, match="slow down 3"):
            Retrying(faulty, QUICK).get(f"{tmp_path}/x")
        assert len(faulty.before) == 5

    def test_no_attempt_starts_after_the_budget(self, tmp_path: Path) -> None:
        faulty = Faulty(before=slow_down(9))
        with pytest.raises(StoreError, match="slow down 0"):
            Retrying(faulty, Patience(attempts=9, base_delay_s=1, budget_s=0)).get(f"{tmp_path}/x")

    @pytest.mark.parametrize("final", [ObjectNotFound("x"), AlreadyExists("x"), PermanentStoreError("x")])
    def test_final_answers_are_final(self, tmp_path: Path, final: StoreError) -> None:
        faulty = Faulty(before=[final, StoreError("asked again")])
        with pytest.raises(type(final)):
            Retrying(faulty, QUICK).put(f"{tmp_path}/x", b"x")
        assert len(faulty.before) == 1

    def test_a_listing_that_breaks_midway_raises_and_never_repeats(self, tmp_path: Path) -> None:
        for name in "abc":
            (tmp_path / name).touch()
        listing = Retrying(Faulty(after=slow_down(1)), QUICK).list(str(tmp_path))
        next(listing)
        with pytest.raises(StoreError, match="slow down"):
            next(listing)

    def test_an_empty_listing_is_empty(self, tmp_path: Path) -> None:
        assert list(Retrying(ObjectStores(), QUICK).list(f"{tmp_path}/none")) == []

    def test_a_conditional_write_finds_its_own_bytes(self, tmp_path: Path) -> None:
        faulty = Faulty(after=slow_down(1))
        Retrying(faulty, QUICK).put_if_absent(f"{tmp_path}/x", b"mine")
        assert (tmp_path / "x").read_bytes() == b"mine"

    def test_a_conditional_write_that_never_arrived_is_sent_again(self, tmp_path: Path) -> None:
        Retrying(Faulty(before=slow_down(2)), QUICK).put_if_absent(f"{tmp_path}/x", b"mine")
        assert (tmp_path / "x").read_bytes() == b"mine"

    def test_a_conditional_write_lost_to_another_says_so(self, tmp_path: Path) -> None:
        (tmp_path / "x").write_bytes(b"theirs")
        with pytest.raises(AlreadyExists):
            Retrying(Faulty(before=slow_down(1)), QUICK).put_if_absent(f"{tmp_path}/x", b"mine")
        assert (tmp_path / "x").read_bytes() == b"theirs"

    def test_a_first_answer_of_exists_is_not_compared(self, tmp_path: Path) -> None:
        (tmp_path / "x").write_bytes(b"same")
        with pytest.raises(AlreadyExists):
            Retrying(ObjectStores(), QUICK).put_if_absent(f"{tmp_path}/x", b"same")

    def test_a_conditional_write_nobody_can_read_back_is_unknown(self, tmp_path: Path) -> None:
        faulty = Faulty(before=[StoreError("reset"), *[PermanentStoreError("denied")] * 9])
        with pytest.raises(OutcomeUnknown, match="denied"):
            Retrying(faulty, QUICK).put_if_absent(f"{tmp_path}/x", b"mine")


class TestReadOnly:
    def test_has_the_reading_verbs_and_no_others(self) -> None:
        assert {name for name in dir(ReadOnly) if not name.startswith("_")} == {
            "get", "head", "links", "list", "names", "share",
        }  # fmt: skip
        assert type(ReadOnly(ObjectStores()).share(2)) is ReadOnly, "a part of it can write no more than the whole"


class TestCounting:
    def test_counts_each_call_by_verb_and_key(self, tmp_path: Path) -> None:
        store = Counting(ObjectStores())
        key = f"{tmp_path}/x"
        store.put(key, b"x")
        store.get(key)
        store.get(key)
        with pytest.raises(ObjectNotFound):
            store.head(f"{tmp_path}/none")
        assert store.calls() == {("put", key): 1, ("get", key): 2, ("head", f"{tmp_path}/none"): 1}

    def test_the_log_counts_calls_of_other_processes(self, tmp_path: Path) -> None:
        store = CountingLog(ObjectStores(), str(tmp_path / "calls"))
        assert store.calls() == Counter()
        keys = [f"{tmp_path}/new\nline", f"{tmp_path}/grün"]
        for key in keys:
            store.put(key, b"x")
        with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as processes:
            list(processes.map(store.get, keys * 20))
        assert store.calls() == Counter({("put", key): 1 for key in keys} | {("get", key): 20 for key in keys})
