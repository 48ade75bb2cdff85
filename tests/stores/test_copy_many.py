"""Copies on threads: all of a list, in its order; one that must stop stops all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Barrier
from uuid import uuid4

import pytest

from firnline.app.engines import Engines
from firnline.errors import NoSuchBucket
from firnline.local.copying import LocalCopyMany
from firnline.policy.limits import StoreLimits
from firnline.policy.parse import parse_policy
from firnline.ports.catalogs import Still, TableName, always
from firnline.ports.copying import Copy, CopyFate, CopyJob, CopyMany, CopyOutcome, Verify
from firnline.ports.packing import Pack, PackMany
from firnline.stores.copies.copying import ObjectCopy
from firnline.stores.copies.packing import ObjectPack
from firnline.stores.copies.verifying import ObjectVerify
from firnline.testing.copies.many import CopyManyContract, CopyManyToBuckets
from firnline.testing.copies.packing import PackManyContract, PackManyToBuckets
from harness.servers.process import Server
from harness.servers.s3 import make_bucket
from tests.stores.test_local import OnDisk
from tests.stores.test_s3 import OnMoto


class TestFilesOnThreads(OnDisk, CopyManyContract):
    @pytest.fixture
    def cold(self, tmp_path: Path) -> str:
        return str(tmp_path / "cold")

    @pytest.fixture(params=[None, 1, 3])
    def many(self, request: pytest.FixtureRequest) -> CopyMany:
        return LocalCopyMany(request.param)

    @pytest.fixture
    def copier(self) -> Copy:
        return ObjectCopy()

    @pytest.fixture
    def verifier(self) -> Verify:
        return ObjectVerify()


@pytest.mark.full("test_copies_all_in_order_then_finds_them")
class TestBucketsOnThreads(OnMoto, CopyManyToBuckets):
    @pytest.fixture
    def cold(self, served: Server) -> str:
        return make_bucket(served, f"c{uuid4().hex[:20]}") + "/cold"

    @pytest.fixture
    def many(self) -> CopyMany:
        return LocalCopyMany()

    @pytest.fixture(params=["by the server", "streamed"])
    def copier(self, served: Server, request: pytest.FixtureRequest) -> Copy:
        far = {"s3.connect-timeout": "6"} if request.param == "streamed" else {}
        return ObjectCopy(served.settings, {**served.settings, **far})

    @pytest.fixture
    def verifier(self, served: Server) -> Verify:
        return ObjectVerify(served.settings)


class TestBundlesOnThreads(OnDisk, PackManyContract):
    @pytest.fixture
    def cold(self, tmp_path: Path) -> str:
        return str(tmp_path / "cold")

    @pytest.fixture(params=[None, 1])
    def many(self, request: pytest.FixtureRequest) -> PackMany:
        return LocalCopyMany(request.param)

    @pytest.fixture
    def packer(self) -> Pack:
        return ObjectPack()

    @pytest.fixture
    def verifier(self) -> Verify:
        return ObjectVerify()


class TestBucketBundlesOnThreads(OnMoto, PackManyToBuckets):
    @pytest.fixture
    def cold(self, served: Server) -> str:
        return make_bucket(served, f"c{uuid4().hex[:20]}") + "/cold"

    @pytest.fixture
    def many(self) -> PackMany:
        return LocalCopyMany()

    @pytest.fixture
    def packer(self, served: Server) -> Pack:
        return ObjectPack(served.settings, served.settings)

    @pytest.fixture
    def verifier(self, served: Server) -> Verify:
        return ObjectVerify(served.settings)


class _Gone(ObjectCopy):
    """Its first copy finds no bucket while the second is under way, which then asks whether it may go on."""

    met = Barrier(2, timeout=10)
    asked: list[str]

    def copy(self, jobs: Sequence[CopyJob], still: Still = always) -> list[CopyOutcome]:
        (job,) = jobs
        self.asked.append(job.target)
        if len(self.asked) <= 2:
            self.met.wait()
        if job.target == "first":
            raise NoSuchBucket("there is no bucket")
        for _ in range(1_000):
            still()
        return [CopyOutcome(job.target, CopyFate.COPIED)]


def test_where_one_finds_the_bucket_gone_the_others_stop() -> None:
    copier = _Gone()
    copier.asked = []
    jobs = [CopyJob("x", name, None, "data") for name in ("first", "second", *("later" for _ in range(500)))]
    with pytest.raises(NoSuchBucket):
        LocalCopyMany(2).copy_many(jobs, copier)
    assert len(copier.asked) < 400


def test_what_the_configuration_says_of_writes_reaches_the_threads() -> None:
    limits = StoreLimits.of(parse_policy("stores: {s3://cold: {writes-at-once: 3}}").stores)
    engines, name = Engines("local", limits=limits), TableName("lake", ("db",), "t")
    assert engines.copy_many(name, "s3://cold/db/t", 10) == LocalCopyMany(3)
    assert engines.copy_many(name, "s3://other/db/t", 10) == LocalCopyMany()
