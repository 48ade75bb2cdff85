"""Bundles keep their contract from and to every kind of store, and what each kind can get wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar
from uuid import uuid4

import pytest

from firnline.errors import LeaseHeld, NoSuchBucket, ObjectFrozen
from firnline.patience import Patience
from firnline.ports.copying import CopyFate, CopyJob, Verify
from firnline.ports.packing import BundleJob, GetPacked, Pack
from firnline.stores.copies import bundles
from firnline.stores.copies.members import ObjectMembers
from firnline.stores.copies.packing import ObjectPack
from firnline.stores.copies.verifying import ObjectVerify
from firnline.testing.copies.contract import LARGE, some_bytes
from firnline.testing.copies.packing import MARK, MarkingRelocation, PackContract, unpacked, whole
from harness.servers.fixtures import Bucket, unique
from harness.servers.process import Server
from harness.servers.proxy import Proxy, Rule, proxy
from harness.servers.s3 import client, make_bucket
from tests.stores.test_buckets import InMemory
from tests.stores.test_copies import Between
from tests.stores.test_copies_on_s3 import ODD_TAG, body, head, put, with_odd_tags
from tests.stores.test_local import OnDisk
from tests.stores.test_s3 import OnMoto, OnVersitygw

QUICK = Patience(base_delay_s=0.01, max_delay_s=0.02)


class TestFilesIntoFiles(OnDisk, PackContract):
    @pytest.fixture
    def cold(self, tmp_path: Path) -> str:
        return str(tmp_path / "cold")

    @pytest.fixture
    def packer(self) -> Pack:
        return ObjectPack()

    @pytest.fixture
    def verifier(self) -> Verify:
        return ObjectVerify()

    @pytest.fixture
    def members(self) -> GetPacked:
        return ObjectMembers()


class TestMemoryIntoMemory(InMemory, PackContract):
    @pytest.fixture
    def cold(self) -> str:
        return f"memory://{uuid4().hex}/cold"

    @pytest.fixture
    def packer(self) -> Pack:
        return ObjectPack()

    @pytest.fixture
    def verifier(self) -> Verify:
        return ObjectVerify()

    @pytest.fixture
    def members(self) -> GetPacked:
        return ObjectMembers()


class PackedToBuckets(PackContract):
    """Bundles in a bucket of their own."""

    @pytest.fixture
    def cold(self, served: Server) -> str:
        self.s3 = client(served)
        return make_bucket(served, f"c{uuid4().hex[:20]}") + "/cold"

    @pytest.fixture
    def packer(self, served: Server) -> Pack:
        return ObjectPack(served.settings, served.settings, storage_class="GLACIER_IR")

    @pytest.fixture
    def verifier(self, served: Server) -> Verify:
        return ObjectVerify(served.settings)

    @pytest.fixture
    def members(self, served: Server) -> GetPacked:
        return ObjectMembers(served.settings)


@pytest.mark.full_but(
    "test_packs_literal_names_of_any_length",
    "test_packs_files_of_every_size",
    "test_half_a_bundle_never_shows",
    "test_what_is_packed_again_is_the_same_bundle",
)
class TestMotoIntoMoto(OnMoto, PackedToBuckets):
    pass


@pytest.mark.full_but(
    "test_packs_files_of_every_size", "test_half_a_bundle_never_shows", "test_another_object_stays_and_is_told"
)
class TestVersitygwIntoVersitygw(OnVersitygw, PackedToBuckets):
    @pytest.fixture
    def packer(self, served: Server) -> Pack:
        return ObjectPack(served.settings, served.settings)


@pytest.mark.full
class TestFilesIntoMoto(Between, PackedToBuckets):
    awkward: ClassVar[tuple[str, ...]] = OnDisk.awkward

    @pytest.fixture
    def root(self, tmp_path: Path) -> str:
        return f"file://{tmp_path}/lake"


@pytest.fixture
def cold(moto_server: Server) -> str:
    return make_bucket(moto_server, unique("cold"))


@pytest.fixture
def between(moto_server: Server) -> Iterator[Proxy]:
    with proxy(moto_server.settings["s3.endpoint"]) as running:
        yield running


def through(between: Proxy, server: Server) -> dict[str, str]:
    return {**server.settings, "s3.endpoint": between.url}


def bundle_of(bucket: Bucket, cold: str, *files: bytes) -> BundleJob:
    jobs = [put(bucket, f"{number}", data) for number, data in enumerate(files)]
    members = tuple(job._replace(target=f"{cold}/t/{number}") for number, job in enumerate(jobs))
    return BundleJob(f"{cold}/bundles/1.tar", cold, members)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("size", [9, LARGE])
def test_a_write_whose_answer_got_lost_is_found_there(
    moto_bucket: Bucket, cold: str, between: Proxy, size: int
) -> None:
    job = bundle_of(moto_bucket, cold, some_bytes(size), b"second")
    method = "POST" if size == LARGE else "PUT"
    between.rules = [Rule("drop", when=lambda asked, path: asked == method and "uploads" not in path, times=1)]
    live, deep = moto_bucket.server.settings, "DEEP_ARCHIVE"
    packer = ObjectPack(live, through(between, moto_bucket.server), storage_class=deep, patience=QUICK)
    (outcome,) = packer.pack([job], MarkingRelocation())
    assert outcome.error == ""
    assert between.counts["drop"] == 1
    assert ObjectVerify(live).verify([whole(outcome)])[0].fate is CopyFate.PRESENT
    assert [each.size for each in outcome.packed] == [size, 6]
    plain = ObjectPack(live, live).pack([job._replace(target=f"{cold}/plain")], MarkingRelocation())
    assert plain[0].packed == tuple(each._replace(bundle=f"{cold}/plain") for each in outcome.packed)
    assert plain[0].checksum == outcome.checksum


def test_a_busy_store_that_loses_answers_gets_every_bundle(moto_bucket: Bucket, cold: str, between: Proxy) -> None:
    settings = through(between, moto_bucket.server)
    files = [some_bytes(100 * number, number) for number in range(12)] + [some_bytes(LARGE)]
    job = bundle_of(moto_bucket, cold, *files)
    between.rules = [Rule("busy", share=0.15), Rule("drop", share=0.1), Rule("cut", share=0.05)]
    patience = Patience(attempts=40, base_delay_s=0.001, max_delay_s=0.01)
    (outcome,) = ObjectPack(settings, settings, patience=patience).pack([job], MarkingRelocation())
    get = ObjectMembers(settings, patience=patience)
    assert outcome.error == ""
    assert [get.get(each) for each in outcome.packed] == files
    between.rules = []
    assert between.counts["busy"] > 0
    assert list(unpacked(body(moto_bucket.server, job.target)).values()) == files


def test_a_bundle_that_was_stopped_leaves_no_parts(moto_bucket: Bucket, cold: str) -> None:
    job = bundle_of(moto_bucket, cold, some_bytes(LARGE))
    asked = 0

    def runs_out() -> None:
        nonlocal asked
        asked += 1
        if asked == 4:
            raise LeaseHeld("the lease ran out")

    live = moto_bucket.server.settings
    with pytest.raises(LeaseHeld):
        ObjectPack(live, live).pack([job], MarkingRelocation(), runs_out)
    torn = job._replace(members=(*job.members, job.members[0]._replace(source=f"{moto_bucket.uri}/missing")))
    assert "missing" in ObjectPack(live, live).pack([torn], MarkingRelocation())[0].error
    left = client(moto_bucket.server).list_multipart_uploads(Bucket=cold.removeprefix("s3://"))
    assert "Uploads" not in left
    assert "Contents" not in client(moto_bucket.server).list_objects_v2(Bucket=cold.removeprefix("s3://"))


def test_a_source_that_is_written_anew_while_it_is_packed_fails_its_bundle(
    moto_bucket: Bucket, cold: str, between: Proxy
) -> None:
    """Its size is the same: only the tag tells."""
    job = bundle_of(moto_bucket, cold, some_bytes(LARGE), b"second")

    def anew(method: str, path: str) -> bool:
        if method == "GET":
            put(moto_bucket, "0", some_bytes(LARGE, seed=1))
        return False

    between.rules = [Rule("busy", when=anew)]
    live = moto_bucket.server.settings
    (outcome,) = ObjectPack(through(between, moto_bucket.server), live).pack([job], MarkingRelocation())
    assert "was written by another process" in outcome.error
    assert "Contents" not in client(moto_bucket.server).list_objects_v2(Bucket=cold.removeprefix("s3://"))


def test_a_bucket_that_is_missing_is_raised(moto_bucket: Bucket, cold: str) -> None:
    job = bundle_of(moto_bucket, cold, b"x")
    live = moto_bucket.server.settings
    from_nowhere = job._replace(members=(job.members[0]._replace(source="s3://no-such-bucket/x"),))
    for broken in (job._replace(target="s3://no-such-bucket/x"), from_nowhere):
        with pytest.raises(NoSuchBucket):
            ObjectPack(live, live).pack([broken], MarkingRelocation())


@pytest.mark.sampled(1)
@pytest.mark.parametrize("size", [200_000, LARGE])
def test_a_bundle_of_an_archive_class_is_packed_again_without_reading_it(
    moto_bucket: Bucket, cold: str, between: Proxy, size: int
) -> None:
    job = bundle_of(moto_bucket, cold, some_bytes(size))
    live, deep = moto_bucket.server.settings, "DEEP_ARCHIVE"
    (outcome,) = ObjectPack(live, live, storage_class=deep).pack([job], MarkingRelocation())
    assert head(moto_bucket.server, job.target)["StorageClass"] == deep
    assert ObjectPack(live, through(between, moto_bucket.server)).pack([job], MarkingRelocation()) == [outcome]
    assert {method for _, method, _ in between.seen} == {"HEAD"}
    with pytest.raises(ObjectFrozen) as told:
        ObjectMembers(through(between, moto_bucket.server)).get(outcome.packed[0])
    assert "restored first" in told.value.hint
    assert [method for _, method, _ in between.seen].count("GET") == 1


@pytest.mark.sampled(1)
@pytest.mark.parametrize("size", [200_000, LARGE])
def test_a_bundle_that_cannot_be_read_back_has_the_tag_of_what_was_seen_to_arrive(
    moto_bucket: Bucket, cold: str, size: int, between: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a key of KMS: an ETag then looks like an md5, and is none."""
    live, odd = moto_bucket.server.settings, {**through(between, moto_bucket.server), "s3.connect-timeout": "9"}
    written = with_odd_tags(monkeypatch, odd)
    job = bundle_of(moto_bucket, cold, some_bytes(size))
    (outcome,) = ObjectPack(live, odd, storage_class="DEEP_ARCHIVE").pack([job], MarkingRelocation())
    assert (outcome.error, outcome.checksum) == ("", "etag:" + ODD_TAG.strip('"'))
    assert len(written) == -(-outcome.size // (8 << 20))
    assert all("Content-MD5" in each.headers for each in written)
    really = whole(outcome)._replace(checksum="etag:" + head(moto_bucket.server, job.target)["ETag"].strip('"'))
    same, other = ObjectVerify(live).verify([really, whole(outcome)])
    assert (same.fate, other.fate) == (CopyFate.PRESENT, CopyFate.FAILED)
    assert "other bytes" in other.error


def test_what_more_is_rewritten_than_a_thread_holds_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundles, "HELD_BYTES", 1_500)
    members = []
    for number in range(4):
        (tmp_path / f"{number}").write_bytes(some_bytes(1_000, number))
        members.append(CopyJob(f"{tmp_path}/{number}", f"{tmp_path}/cold/{number}", 1_000, "position-deletes"))
    job = BundleJob(f"{tmp_path}/cold/b", f"{tmp_path}/cold", tuple(members))
    (outcome,) = ObjectPack().pack([job], MarkingRelocation())
    assert outcome.error == ""
    assert unpacked(Path(job.target).read_bytes()) == {f"{each}": MARK + some_bytes(1_000, each) for each in range(4)}


class Fickle(MarkingRelocation):
    """Rewrites a file otherwise each time."""

    def relocated(self, kind: object, key: str, data: bytes) -> bytes:
        return bytes(len(list(Path(key).parent.glob("asked-*")))) + _asked(key)


def _asked(key: str) -> bytes:
    (Path(key).parent / f"asked-{uuid4().hex}").touch()
    return b"x"


def test_a_file_that_is_rewritten_otherwise_the_second_time_fails_its_bundle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundles, "HELD_BYTES", 0)
    (tmp_path / "x").write_bytes(b"x")
    member = CopyJob(f"{tmp_path}/x", f"{tmp_path}/cold/x", 1, "position-deletes")
    job = BundleJob(f"{tmp_path}/cold/b", f"{tmp_path}/cold", (member,))
    (outcome,) = ObjectPack().pack([job], Fickle())
    assert "were announced" in outcome.error
    assert not Path(job.target).exists()


def test_the_systems_own_tar_unpacks_a_bundle_at_the_root(tmp_path: Path) -> None:
    names = ["data/day=2024-01-01/a%20b.parquet", "/doubled", "x" * 90 + "/" + "y" * 200, "雪/grün.parquet", "empty"]
    for number, name in enumerate(names):
        path = tmp_path / "live" / name.removeprefix("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"%d" % number if name != "empty" else b"")
    live, cold = f"{tmp_path}/live", f"{tmp_path}/cold"
    members = tuple(CopyJob(f"{live}/{name}", f"{cold}/{name}", None, "data") for name in names)
    (outcome,) = ObjectPack().pack([BundleJob(f"{cold}/b.tar", cold, members)], MarkingRelocation())
    assert outcome.error == ""
    subprocess.run(["tar", "xf", "b.tar"], cwd=cold, check=True, capture_output=True)
    for job in members:
        assert Path(job.target).read_bytes() == Path(job.source).read_bytes()


MEASURED = """
import json, resource, sys
from firnline.ports.copying import CopyJob
from firnline.ports.packing import BundleJob
from firnline.stores.copies.packing import ObjectPack
from firnline.testing.copies.packing import MarkingRelocation
folder, number = json.loads(sys.argv[1])

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

def pack(name, times):
    members = [CopyJob(f"{folder}/{name}", f"{folder}/cold/{each}", None, "data") for each in range(times)]
    (outcome,) = ObjectPack().pack([BundleJob(f"{folder}/cold/{name}.tar", f"{folder}/cold", tuple(members))],
                                   MarkingRelocation())
    assert not outcome.error, outcome

pack("small", 3)
before = peak()
pack("large", number)
print(json.dumps(peak() - before))
"""


@pytest.mark.full
def test_a_large_bundle_takes_no_more_memory(tmp_path: Path) -> None:
    """A hundred MiB of members in pieces of eight."""
    (tmp_path / "small").write_bytes(some_bytes(1_000))
    (tmp_path / "large").write_bytes(bytes(33 << 20))
    said = subprocess.run(
        [sys.executable, "-c", MEASURED, json.dumps([str(tmp_path), 3])], check=True, capture_output=True, text=True
    )
    assert json.loads(said.stdout) < 60 << 20
