"""Copies on executors, to a real S3 server and to files: the same contract, with the pace shared out."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession

from firnline.app.engines import Engines
from firnline.ports.catalogs import TableName
from firnline.ports.copying import Copy, CopyFate, CopyMany, Verify
from firnline.ports.packing import Pack, PackMany
from firnline.spark.copies.copying import SparkCopyMany
from firnline.stores.copies.copying import ObjectCopy
from firnline.stores.copies.packing import ObjectPack
from firnline.stores.copies.verifying import ObjectVerify
from firnline.testing.copies.many import CopyManyContract, CopyManyToBuckets
from firnline.testing.copies.packing import PackManyContract, PackManyToBuckets
from harness.servers.process import Server
from harness.servers.s3 import make_bucket
from tests.stores.test_local import OnDisk
from tests.stores.test_s3 import OnMoto

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


class TestFilesOnExecutors(OnDisk, CopyManyContract):
    @pytest.fixture
    def cold(self, tmp_path: Path) -> str:
        return str(tmp_path / "cold")

    @pytest.fixture
    def many(self, spark_session: SparkSession) -> CopyMany:
        return SparkCopyMany(spark_session, at_once=2)

    @pytest.fixture
    def copier(self) -> Copy:
        return ObjectCopy()

    @pytest.fixture
    def verifier(self) -> Verify:
        return ObjectVerify()


@pytest.mark.full("test_copies_all_in_order_then_finds_them")
class TestBucketsOnExecutors(OnMoto, CopyManyToBuckets):
    @pytest.fixture
    def cold(self, served: Server) -> str:
        return make_bucket(served, f"c{uuid4().hex[:20]}") + "/cold"

    @pytest.fixture
    def many(self, spark_session: SparkSession) -> CopyMany:
        return SparkCopyMany(spark_session, "lake.db.t")

    @pytest.fixture
    def copier(self, served: Server) -> Copy:
        return ObjectCopy(served.settings, {**served.settings, "s3.connect-timeout": "6"}, storage_class="GLACIER_IR")

    @pytest.fixture
    def verifier(self, served: Server) -> Verify:
        return ObjectVerify(served.settings)


class TestBundlesOnExecutors(OnDisk, PackManyContract):
    @pytest.fixture
    def cold(self, tmp_path: Path) -> str:
        return str(tmp_path / "cold")

    @pytest.fixture
    def many(self, spark_session: SparkSession) -> PackMany:
        return SparkCopyMany(spark_session, at_once=2)

    @pytest.fixture
    def packer(self) -> Pack:
        return ObjectPack()

    @pytest.fixture
    def verifier(self) -> Verify:
        return ObjectVerify()


@pytest.mark.full("test_a_bucket_that_is_gone_is_raised_as_everywhere", "test_packs_all_in_order_and_finds_them_again")
class TestBucketBundlesOnExecutors(OnMoto, PackManyToBuckets):
    @pytest.fixture
    def cold(self, served: Server) -> str:
        return make_bucket(served, f"c{uuid4().hex[:20]}") + "/cold"

    @pytest.fixture
    def many(self, spark_session: SparkSession) -> PackMany:
        return SparkCopyMany(spark_session, "lake.db.t")

    @pytest.fixture
    def packer(self, served: Server) -> Pack:
        return ObjectPack(served.settings, served.settings, storage_class="DEEP_ARCHIVE")

    @pytest.fixture
    def verifier(self, served: Server) -> Verify:
        return ObjectVerify(served.settings)


class WatchedCopy(ObjectCopy):
    """Remembers, here and not on executors, into how many parts it was divided."""

    parts = 0

    def share(self, parts: int) -> ObjectCopy:
        self.parts = parts
        return super().share(parts)


@pytest.mark.full
def test_every_task_has_its_share_of_the_pace(spark_session: SparkSession, tmp_path: Path) -> None:
    class Files(CopyManyContract, OnDisk):
        pass

    jobs, copier = Files().jobs(str(tmp_path / "live"), str(tmp_path / "cold"), 9), WatchedCopy()
    done = SparkCopyMany(spark_session).copy_many(jobs, copier)
    assert {each.fate for each in done} == {CopyFate.COPIED}
    assert copier.parts == spark_session.sparkContext.defaultParallelism


def test_spark_copies_where_it_was_asked_for(spark_session: SparkSession) -> None:
    name = TableName("lake", ("db",), "t")
    assert isinstance(Engines("spark", spark_session).copy_many(name, "s3://cold/t", 1), SparkCopyMany)
    assert isinstance(Engines("auto", spark_session).copy_many(name, "s3://cold/t", 1), SparkCopyMany)
    assert not isinstance(Engines("local", spark_session).copy_many(name, "s3://cold/t", 10**9), SparkCopyMany)
