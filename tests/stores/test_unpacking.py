"""Files come out of bundles as copies do from anywhere else, and bundles of archive classes not before they may."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from firnline.local.copying import LocalCopyMany
from firnline.ports.copying import Copy, CopyFate, CopyJob, Verify
from firnline.ports.packing import BundleJob
from firnline.ports.thawing import Warmth
from firnline.stores.copies.copying import ObjectCopy
from firnline.stores.copies.packing import ObjectPack
from firnline.stores.copies.thawing import ObjectThaw
from firnline.stores.copies.unpacking import ObjectUnpack
from firnline.stores.copies.verifying import ObjectVerify
from firnline.testing.copies.contract import LARGE, some_bytes
from firnline.testing.copies.packing import MarkingRelocation
from firnline.testing.copies.unpacking import KnownPlaces, UnpackAsCopyContract, UnpackContract
from harness.servers.fixtures import Bucket, unique
from harness.servers.process import Server
from harness.servers.proxy import proxy
from harness.servers.s3 import make_bucket
from tests.stores.test_copies_on_s3 import body, put
from tests.stores.test_local import OnDisk
from tests.stores.test_s3 import OnMoto


@pytest.mark.full(
    "test_many_that_copy_the_same_at_once_agree",
    "test_every_size_arrives_once",
    "test_another_object_stays_and_is_told",
    "test_it_is_asked_again_before_the_object_gets_its_name",
)
class TestBundlesOfFiles(OnDisk, UnpackAsCopyContract):
    @pytest.fixture
    def cold(self, tmp_path: Path) -> str:
        return str(tmp_path / "cold")

    @pytest.fixture
    def copier(self, known: KnownPlaces) -> Copy:
        return ObjectUnpack(known)

    @pytest.fixture
    def verifier(self) -> Verify:
        return ObjectVerify()


@pytest.mark.full("test_a_damaged_member_gets_no_name")
class TestBundlesOfBuckets(OnMoto, UnpackContract):
    @pytest.fixture
    def cold(self, served: Server) -> str:
        return make_bucket(served, f"c{uuid4().hex[:20]}") + "/cold"

    @pytest.fixture
    def copier(self, known: KnownPlaces, served: Server) -> Copy:
        return ObjectUnpack(known, served.settings, served.settings)


@pytest.mark.full
class TestBundlesOfBucketsAsCopies(TestBundlesOfBuckets, UnpackAsCopyContract):
    @pytest.fixture
    def verifier(self, served: Server) -> Verify:
        return ObjectVerify(served.settings)


def frozen_bundle(bucket: Bucket, *files: bytes) -> tuple[KnownPlaces, list[CopyJob]]:
    """Returns what lies in a bundle of the deepest class, and the jobs of taking it out again."""
    cold, live = make_bucket(bucket.server, unique("deep")), bucket.server.settings
    jobs = [put(bucket, f"{number}", data) for number, data in enumerate(files)]
    members = tuple(job._replace(target=f"{cold}/t/{number}") for number, job in enumerate(jobs))
    packer = ObjectPack(live, live, storage_class="DEEP_ARCHIVE")
    (outcome,) = packer.pack([BundleJob(f"{cold}/1.tar", cold, members)], MarkingRelocation())
    back = [CopyJob(each.place, f"{bucket.uri}/back/{each.size}", each.size, "data") for each in outcome.packed]
    return KnownPlaces({each.place: each for each in outcome.packed}), back


def test_a_frozen_bundle_is_told_at_once_and_comes_out_when_it_was_restored(moto_bucket: Bucket) -> None:
    files = [some_bytes(size, size) for size in (0, 1_000, LARGE)]
    known, jobs = frozen_bundle(moto_bucket, *files)
    live = moto_bucket.server.settings
    with proxy(live["s3.endpoint"]) as between:
        outcomes = ObjectUnpack(known, {**live, "s3.endpoint": between.url}, live).copy(jobs[1:])
        assert [each.fate for each in outcomes] == [CopyFate.FAILED] * 2
        assert all("archive class" in each.error for each in outcomes)
        assert [method for _, method, _ in between.seen] == ["HEAD", "GET", "GET"]
    (bundle,) = {each.bundle for each in known.places.values()}
    thaw = ObjectThaw(live)
    assert thaw.warmth(bundle) is Warmth.FROZEN
    thaw.request(bundle, 1, "bulk")
    assert thaw.warmth(bundle) is Warmth.READABLE
    unpack = ObjectUnpack(known, live, live).share(2)
    assert [each.fate for each in LocalCopyMany(2).copy_many(jobs, unpack)] == [CopyFate.COPIED] * 3
    assert [body(moto_bucket.server, job.target) for job in jobs] == files


def test_a_frozen_object_is_not_copied_either_and_is_told_at_once(moto_bucket: Bucket) -> None:
    known, _ = frozen_bundle(moto_bucket, some_bytes(200_000))
    live = moto_bucket.server.settings
    (bundle,) = {each.bundle for each in known.places.values()}
    job = CopyJob(bundle, f"{moto_bucket.uri}/copy", None, "data")
    for target in (live, {**live, "s3.connect-timeout": "6"}):
        (outcome,) = ObjectCopy(live, target).copy([job])
        assert outcome.fate is CopyFate.FAILED
        assert "archive class" in outcome.error


def test_only_the_bytes_of_a_member_are_read(moto_bucket: Bucket) -> None:
    live = moto_bucket.server.settings
    jobs = [put(moto_bucket, f"{number}", some_bytes(5_000, number)) for number in range(40)]
    cold = make_bucket(moto_bucket.server, unique("cold"))
    members = tuple(job._replace(target=f"{cold}/t/{number}") for number, job in enumerate(jobs))
    (outcome,) = ObjectPack(live, live).pack([BundleJob(f"{cold}/1.tar", cold, members)], MarkingRelocation())
    known = KnownPlaces({each.place: each for each in outcome.packed})
    with proxy(live["s3.endpoint"]) as between:
        unpack = ObjectUnpack(known, {**live, "s3.endpoint": between.url}, live)
        wanted = [members[7].target, members[31].target]
        back = [CopyJob(place, f"{moto_bucket.uri}/back{place[-2:]}", 5_000, "data") for place in wanted]
        assert [each.fate for each in unpack.copy(back)] == [CopyFate.COPIED] * 2
        assert [method for _, method, _ in between.seen] == ["HEAD", "GET", "GET"]
