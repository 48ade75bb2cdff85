"""The contract of CopyMany: all copies of a list, in its order, on threads or executors."""

from __future__ import annotations

import pytest

from firnline.errors import LeaseHeld, NoSuchBucket
from firnline.model.locations import join
from firnline.ports.copying import Copy, CopyFate, CopyJob, CopyMany, Verify
from firnline.testing.copies.contract import some_bytes, stored
from firnline.testing.stores import SideDoor


class CopyManyContract(SideDoor):
    """The contract of CopyMany. Sources lie below `root`, copies below `cold`."""

    @pytest.fixture
    def cold(self) -> str:
        raise NotImplementedError

    @pytest.fixture
    def many(self) -> CopyMany:
        raise NotImplementedError

    @pytest.fixture
    def copier(self) -> Copy:
        raise NotImplementedError

    @pytest.fixture
    def verifier(self) -> Verify:
        raise NotImplementedError

    def jobs(self, root: str, cold: str, number: int = 50) -> list[CopyJob]:
        """Returns jobs whose sources were put there; tables do not know the size of every third."""
        names = [f"{each:03d}" for each in range(number)]
        for each, name in enumerate(names):
            self.raw_put(join(root, name), some_bytes(each * 1_000, seed=each))
        sizes = [None if each % 3 == 0 else each * 1_000 for each in range(number)]
        return [
            CopyJob(join(root, name), join(cold, name), size, "data") for name, size in zip(names, sizes, strict=True)
        ]

    def test_copies_all_in_order_then_finds_them(
        self, many: CopyMany, copier: Copy, verifier: Verify, root: str, cold: str
    ) -> None:
        jobs = self.jobs(root, cold)
        outcomes, again = many.copy_many(jobs, copier), many.copy_many(jobs, copier)
        assert [(each.target, each.fate) for each in outcomes] == [(job.target, CopyFate.COPIED) for job in jobs]
        assert again == [each._replace(fate=CopyFate.PRESENT) for each in outcomes]
        assert [self.raw_get(job.target) for job in jobs] == [self.raw_get(job.source) for job in jobs]
        assert many.verify_many([stored(each) for each in outcomes], verifier) == again

    def test_failures_keep_their_place(
        self, many: CopyMany, copier: Copy, verifier: Verify, root: str, cold: str
    ) -> None:
        jobs = self.jobs(root, cold, 12)
        jobs[5] = jobs[5]._replace(source=join(root, "missing"))
        jobs[7] = jobs[7]._replace(size=1)
        outcomes = many.copy_many(jobs, copier)
        assert [number for number, each in enumerate(outcomes) if each.fate is CopyFate.FAILED] == [5, 7]
        assert "missing" in outcomes[5].error
        self.raw_put(jobs[2].target, some_bytes(2_000, seed=99))
        looked = many.verify_many([stored(each) for each in outcomes], verifier)
        assert [number for number, each in enumerate(looked) if each.fate is CopyFate.FAILED] == [2, 5, 7]

    def test_nothing_to_do_is_done(self, many: CopyMany, copier: Copy, verifier: Verify) -> None:
        assert many.copy_many([], copier) == []
        assert many.verify_many([], verifier) == []
        assert many.rows > 1

    def test_without_the_lease_nothing_is_written(self, many: CopyMany, copier: Copy, root: str, cold: str) -> None:
        jobs = self.jobs(root, cold, 4)

        def lost() -> None:
            raise LeaseHeld("as asked")

        with pytest.raises(LeaseHeld):
            many.copy_many(jobs, copier, lost)
        for job in jobs:
            with pytest.raises(KeyError):
                self.raw_get(job.target)


class CopyManyToBuckets(CopyManyContract):
    """The same where the copies go to a bucket, which may be missing."""

    def test_a_bucket_that_is_gone_is_raised_as_everywhere(self, many: CopyMany, copier: Copy, root: str) -> None:
        jobs = [
            job._replace(target=f"s3://no-such-bucket/{number}") for number, job in enumerate(self.jobs(root, "", 3))
        ]
        with pytest.raises(NoSuchBucket, match="there is no bucket s3://no-such-bucket"):
            many.copy_many(jobs, copier)
