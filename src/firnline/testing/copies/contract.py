"""The contract of Copy and of Verify: every copy is whole and seen to be, and nothing is ever replaced."""

from __future__ import annotations

import pickle
import random
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import pytest

from firnline.errors import LeaseHeld, StoreError
from firnline.model.locations import join
from firnline.ports.copying import Copy, CopyFate, CopyJob, CopyOutcome, Stored, Verify
from firnline.testing.stores import SideDoor

LARGE = (8 << 20) + 3
"""More than one request brings."""


def some_bytes(size: int, seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(size)


def flipped(data: bytes, at: int) -> bytes:
    """Returns the same bytes but for one bit."""
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def stored(outcome: CopyOutcome) -> Stored:
    """Returns what a record keeps of a copy."""
    return Stored(outcome.target, outcome.size, outcome.checksum)


class CopyContract(SideDoor):
    """The contract of Copy and Verify. Sources lie below `root`, copies below `cold`; the side door leads to both."""

    threads: ClassVar[int] = 8

    @pytest.fixture
    def cold(self) -> str:
        raise NotImplementedError("return the location of an empty folder that is not the sources'")

    @pytest.fixture
    def copier(self) -> Copy:
        raise NotImplementedError

    @pytest.fixture
    def verifier(self) -> Verify:
        """What looks at copies below `cold`."""
        raise NotImplementedError

    def filled(self, root: str, cold: str, name: str, data: bytes, *, told: bool = True) -> CopyJob:
        """Returns the job of a source that was put there; `told`: its table knows its size."""
        self.raw_put(join(root, name), data)
        return CopyJob(join(root, name), join(cold, name), len(data) if told else None, "data")

    def nothing_at(self, key: str) -> bool:
        try:
            self.raw_get(key)
        except KeyError:
            return True
        return False

    def test_copies_literal_names(self, copier: Copy, verifier: Verify, root: str, cold: str) -> None:
        jobs = [self.filled(root, cold, name, b"%d" % number) for number, name in enumerate(self.awkward)]
        outcomes = copier.copy(jobs)
        assert [(each.target, each.fate, each.error) for each in outcomes] == [
            (job.target, CopyFate.COPIED, "") for job in jobs
        ]
        assert [self.raw_get(job.target) for job in jobs] == [b"%d" % number for number in range(len(jobs))]
        assert {each.fate for each in verifier.verify([stored(each) for each in outcomes])} == {CopyFate.PRESENT}

    @pytest.mark.parametrize("told", [True, False], ids=["size told", "size not told"])
    @pytest.mark.parametrize("size", [0, 1, 131_072, LARGE])
    def test_every_size_arrives_once(
        self, copier: Copy, verifier: Verify, root: str, cold: str, size: int, told: bool
    ) -> None:
        data = some_bytes(size)
        job = self.filled(root, cold, "x", data, told=told)
        (first,), (second,) = copier.copy([job]), copier.copy([job])
        assert (first.fate, first.size, first.error) == (CopyFate.COPIED, size, "")
        assert second == first._replace(fate=CopyFate.PRESENT)
        assert self.raw_get(job.target) == data
        assert verifier.verify([stored(first)]) == [second]

    @pytest.mark.parametrize("size", [100, LARGE])
    def test_another_object_stays_and_is_told(self, copier: Copy, root: str, cold: str, size: int) -> None:
        data = some_bytes(size)
        job = self.filled(root, cold, "x", data)
        for other in (some_bytes(size, seed=1), flipped(data, size - 1), data[:-1], data + b"x", b""):
            self.raw_put(job.target, other)
            (outcome,) = copier.copy([job])
            assert outcome.fate is CopyFate.FAILED
            assert "another object lies there" in outcome.error
            assert self.raw_get(job.target) == other

    @pytest.mark.parametrize("size", [100, LARGE])
    def test_one_bit_that_changed_later_is_found(
        self, copier: Copy, verifier: Verify, root: str, cold: str, size: int
    ) -> None:
        data = some_bytes(size)
        job = self.filled(root, cold, "x", data)
        (copied,) = copier.copy([job])
        self.raw_put(job.target, flipped(data, size // 2))
        (looked,), (again,) = verifier.verify([stored(copied)]), copier.copy([job])
        assert (looked.fate, again.fate) == (CopyFate.FAILED, CopyFate.FAILED)
        assert "other bytes" in looked.error
        assert "another object lies there" in again.error

    def test_an_object_that_lay_there_is_taken_for_a_copy_by_its_bytes(
        self, copier: Copy, verifier: Verify, root: str, cold: str
    ) -> None:
        job = self.filled(root, cold, "x", some_bytes(LARGE))
        self.raw_put(job.target, some_bytes(LARGE))
        (outcome,) = copier.copy([job])
        assert (outcome.fate, outcome.error) == (CopyFate.PRESENT, "")
        assert verifier.verify([stored(outcome)])[0].fate is CopyFate.PRESENT

    def test_a_source_that_is_missing_fails(self, copier: Copy, root: str, cold: str) -> None:
        job = CopyJob(join(root, "missing"), join(cold, "x"), 3, "data")
        for _ in range(2):
            (outcome,) = copier.copy([job])
            assert outcome.fate is CopyFate.FAILED
            assert "missing" in outcome.error
            assert self.nothing_at(job.target)
            job = job._replace(size=None)

    def test_a_source_of_another_size_fails_and_both_are_named(self, copier: Copy, root: str, cold: str) -> None:
        job = self.filled(root, cold, "x", b"four")
        for said in (3, 5, LARGE):
            (outcome,) = copier.copy([job._replace(size=said)])
            assert outcome.fate is CopyFate.FAILED
            assert "4 bytes" in outcome.error
            assert f"{said:,}" in outcome.error
            assert self.nothing_at(job.target)
        copier.copy([job])
        assert copier.copy([job._replace(size=5)])[0].fate is CopyFate.FAILED

    def test_one_that_fails_fails_alone_and_in_its_place(self, copier: Copy, root: str, cold: str) -> None:
        jobs = [self.filled(root, cold, f"{number}", b"%d" % number) for number in range(6)]
        jobs[1] = jobs[1]._replace(source=join(root, "missing"))
        jobs[3] = jobs[3]._replace(target=join(cold, "folder/../x"))
        jobs[4] = jobs[4]._replace(source="gopher://hole/x")
        outcomes = copier.copy(jobs)
        assert [each.target for each in outcomes] == [job.target for job in jobs]
        copied, failed = CopyFate.COPIED, CopyFate.FAILED
        assert [each.fate for each in outcomes] == [copied, failed, copied, failed, failed, copied]
        assert all(each.error for each in outcomes if each.fate is failed)

    @pytest.mark.parametrize("size", [100, LARGE])
    @pytest.mark.parametrize("error", [LeaseHeld("the lease ran out"), StoreError("the lease cannot be renewed")])
    def test_nothing_is_written_once_it_may_not_be(
        self, copier: Copy, root: str, cold: str, size: int, error: Exception
    ) -> None:
        job = self.filled(root, cold, "x", some_bytes(size))

        def no_more() -> None:
            raise error

        with pytest.raises(type(error), match=str(error)):
            copier.copy([job], no_more)
        assert self.nothing_at(job.target)

    def test_it_is_asked_again_before_the_object_gets_its_name(self, copier: Copy, root: str, cold: str) -> None:
        job = self.filled(root, cold, "x", some_bytes(LARGE))
        asked = 0

        def count() -> None:
            nonlocal asked
            asked += 1

        copier.copy([job], count)
        ran_out_at, asked = asked, 0
        other = self.filled(root, cold, "y", some_bytes(LARGE))

        def runs_out() -> None:
            count()
            if asked == ran_out_at:
                raise LeaseHeld("the lease ran out")

        if ran_out_at > 1:
            with pytest.raises(LeaseHeld):
                copier.copy([other], runs_out)
            assert self.nothing_at(other.target)

    def test_travels_in_a_pickle(self, copier: Copy, verifier: Verify, root: str, cold: str) -> None:
        for name, (copy, look) in {"x": (copier, verifier), "y": (copier.share(4), verifier.share(4))}.items():
            job = self.filled(root, cold, name, some_bytes(100))
            (outcome,) = pickle.loads(pickle.dumps(copy)).copy([job])
            assert outcome.fate is CopyFate.COPIED
            assert pickle.loads(pickle.dumps(look)).verify([stored(outcome)])[0].fate is CopyFate.PRESENT

    @pytest.mark.parametrize("size", [1_000, LARGE])
    def test_many_that_copy_the_same_at_once_agree(self, copier: Copy, root: str, cold: str, size: int) -> None:
        job = self.filled(root, cold, "x", some_bytes(size))
        with ThreadPoolExecutor(self.threads) as pool:
            outcomes = [each for (each,) in pool.map(lambda _: copier.copy([job]), range(self.threads))]
        assert {each.fate for each in outcomes} <= {CopyFate.COPIED, CopyFate.PRESENT}, outcomes
        assert CopyFate.COPIED in {each.fate for each in outcomes}
        assert {(each.size, each.checksum) for each in outcomes} == {(size, outcomes[0].checksum)}
        assert self.raw_get(job.target) == some_bytes(size)

    def test_what_cannot_be_seen_is_not_there(self, copier: Copy, verifier: Verify, root: str, cold: str) -> None:
        (outcome,) = copier.copy([self.filled(root, cold, "x", b"four")])
        seen = stored(outcome)
        wrong = [
            seen._replace(target=join(cold, "missing")),
            seen._replace(size=5),
            seen._replace(checksum="sha1024:00"),
            seen._replace(checksum=""),
            seen._replace(checksum=outcome.checksum[:-1]),
            seen._replace(target="relative/x"),
        ]
        looked = verifier.verify([*wrong, seen])
        assert [each.fate for each in looked] == [CopyFate.FAILED] * len(wrong) + [CopyFate.PRESENT]
        assert [each.target for each in looked] == [each.target for each in (*wrong, seen)]
        assert all(each.error for each in looked[:-1])
