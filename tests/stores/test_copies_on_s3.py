"""What only S3 has: storage classes, servers that copy by themselves, tags of parts, answers that get lost."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import obstore
import pytest

from firnline.errors import LeaseHeld, NoSuchBucket
from firnline.local.copying import LocalCopyMany
from firnline.patience import Patience
from firnline.policy.limits import StoreLimits
from firnline.policy.parse import parse_policy
from firnline.ports.copying import CopyFate, CopyJob
from firnline.stores.copies.copying import ObjectCopy
from firnline.stores.copies.verifying import ObjectVerify
from firnline.stores.s3.places import open_s3
from firnline.stores.s3.requests import WireAnswer, WireRequest
from firnline.stores.throttle import Lanes, Throttle
from firnline.testing.copies.contract import LARGE, flipped, some_bytes, stored
from harness.servers.fixtures import Bucket, unique
from harness.servers.process import Server
from harness.servers.proxy import Proxy, Rule, proxy
from harness.servers.s3 import client, make_bucket

from .careless import careless

COLD = "GLACIER_IR"
PART = 5 << 20
ODD_TAG = f'"{"0" * 32}"'


@pytest.fixture
def cold(moto_server: Server) -> str:
    return make_bucket(moto_server, unique("cold"))


@pytest.fixture
def between(moto_server: Server) -> Iterator[Proxy]:
    with proxy(moto_server.settings["s3.endpoint"]) as running:
        yield running


def through(between: Proxy, server: Server) -> dict[str, str]:
    return {**server.settings, "s3.endpoint": between.url}


def put(bucket: Bucket, name: str, data: bytes) -> CopyJob:
    uri = bucket.uri.removeprefix("s3://")
    client(bucket.server).put_object(Bucket=uri, Key=name, Body=data)
    return CopyJob(f"{bucket.uri}/{name}", "", len(data), "data")


def put_in_parts(bucket: Bucket, name: str, parts: list[bytes]) -> CopyJob:
    """Writes a source as Spark and Iceberg do: its tag is made of those of its parts."""
    s3, named = client(bucket.server), {"Bucket": bucket.uri.removeprefix("s3://"), "Key": name}
    upload = {**named, "UploadId": s3.create_multipart_upload(**named)["UploadId"]}
    said = [s3.upload_part(**upload, PartNumber=number, Body=part) for number, part in enumerate(parts, 1)]
    tags = [{"PartNumber": number, "ETag": each["ETag"]} for number, each in enumerate(said, 1)]
    s3.complete_multipart_upload(**upload, MultipartUpload={"Parts": tags})
    return CopyJob(f"{bucket.uri}/{name}", "", sum(map(len, parts)), "data")


def head(server: Server, key: str) -> dict[str, Any]:
    bucket, _, name = key.removeprefix("s3://").partition("/")
    said: dict[str, Any] = client(server).head_object(Bucket=bucket, Key=name)
    return said


def body(server: Server, key: str) -> bytes:
    bucket, _, name = key.removeprefix("s3://").partition("/")
    return bytes(client(server).get_object(Bucket=bucket, Key=name)["Body"].read())


@pytest.mark.sampled(1)
@pytest.mark.parametrize("way", ["by the server", "streamed"])
def test_a_class_is_for_objects_that_are_large_enough(moto_bucket: Bucket, cold: str, way: str) -> None:
    sizes = {"small": 131_071, "just": 131_072, "large": LARGE}
    jobs = [put(moto_bucket, name, some_bytes(size))._replace(target=f"{cold}/{name}") for name, size in sizes.items()]
    jobs.append(put_in_parts(moto_bucket, "parts", [some_bytes(PART), b"x"])._replace(target=f"{cold}/parts"))
    live = moto_bucket.server.settings
    target = live if way == "by the server" else {**live, "s3.connect-timeout": "6"}
    outcomes = ObjectCopy(live, target, storage_class=COLD).copy(jobs)
    assert [each.fate for each in outcomes] == [CopyFate.COPIED] * 4, outcomes
    classes = [head(moto_bucket.server, job.target).get("StorageClass", "STANDARD") for job in jobs]
    assert classes == ["STANDARD", COLD, COLD, COLD]
    plain = ObjectCopy(live, target).copy([jobs[1]._replace(target=f"{cold}/plain")])
    assert plain[0].fate is CopyFate.COPIED
    assert "StorageClass" not in head(moto_bucket.server, f"{cold}/plain")


def test_a_server_copies_by_itself(moto_bucket: Bucket, cold: str, between: Proxy) -> None:
    settings = through(between, moto_bucket.server)
    jobs = [put(moto_bucket, f"{size}", some_bytes(size))._replace(target=f"{cold}/{size}") for size in (0, 9, LARGE)]
    jobs.append(put_in_parts(moto_bucket, "p", [some_bytes(PART), some_bytes(PART), b"x"])._replace(target=f"{cold}/p"))
    outcomes = ObjectCopy(settings, settings).copy(jobs)
    assert [each.fate for each in outcomes] == [CopyFate.COPIED] * 4
    assert Counter(method for _, method, _ in between.seen) == {"HEAD": 2 * 4 + 2, "PUT": 3 + 3, "POST": 2}
    for job, outcome in zip(jobs, outcomes, strict=True):
        assert body(moto_bucket.server, job.target) == body(moto_bucket.server, job.source)
        tag = head(moto_bucket.server, job.target)["ETag"].strip('"')
        assert tag == head(moto_bucket.server, job.source)["ETag"].strip('"') == outcome.checksum.partition(":")[2]
    assert outcomes[3].checksum.startswith(f"md5/{PART}:")


def test_looking_again_reads_nothing(moto_bucket: Bucket, cold: str, between: Proxy) -> None:
    """Neither what looks before a commit, nor a run that goes on, on one server and with copies that it streamed."""
    live, settings = moto_bucket.server.settings, through(between, moto_bucket.server)
    jobs = [put(moto_bucket, f"{size}", some_bytes(size))._replace(target=f"{cold}/{size}") for size in (0, 9, 9_999)]
    jobs.append(put_in_parts(moto_bucket, "p", [some_bytes(PART), b"x"])._replace(target=f"{cold}/p"))
    large = put(moto_bucket, "large", some_bytes(LARGE))._replace(target=f"{cold}/large")
    copied = [*ObjectCopy(live, live).copy(jobs), *ObjectCopy(live, settings).copy([large])]
    between.seen.clear()
    again = ObjectCopy(settings, settings).copy(jobs)
    assert [each.fate for each in again] == [CopyFate.PRESENT] * 4
    assert again == [each._replace(fate=CopyFate.PRESENT) for each in copied[:4]]
    looked = ObjectVerify(settings).verify([stored(each) for each in copied])
    assert [each.fate for each in looked] == [CopyFate.PRESENT] * 5
    assert {method for _, method, _ in between.seen} == {"HEAD"}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("way", ["by the server", "streamed"])
def test_parts_of_all_sizes_are_compared_by_their_bytes(moto_bucket: Bucket, cold: str, way: str) -> None:
    parts = [some_bytes(PART, 1), some_bytes(PART + 7, 2), some_bytes(PART - 1, 3)]
    job = put_in_parts(moto_bucket, "x", parts)._replace(target=f"{cold}/x")
    live = moto_bucket.server.settings
    copier = ObjectCopy(live, live if way == "by the server" else {**live, "s3.connect-timeout": "6"})
    (copied,), (again,) = copier.copy([job]), copier.copy([job])
    assert (copied.fate, copied.size, copied.error) == (CopyFate.COPIED, 3 * PART + 6, "")
    assert again == copied._replace(fate=CopyFate.PRESENT)
    assert body(moto_bucket.server, job.target) == b"".join(parts)
    assert ObjectVerify(live).verify([stored(copied)]) == [again]
    client(moto_bucket.server).put_object(Bucket=cold.removeprefix("s3://"), Key="x", Body=flipped(b"".join(parts), 9))
    assert copier.copy([job])[0].fate is CopyFate.FAILED
    assert ObjectVerify(live).verify([stored(copied)])[0].fate is CopyFate.FAILED


def with_odd_tags(monkeypatch: pytest.MonkeyPatch, settings: dict[str, str]) -> list[WireRequest]:
    """Returns what is written from now on; each object gets a tag that looks like an md5, and is none."""
    wire, written = open_s3(settings).wire, list[WireRequest]()
    really = wire.send

    def send(asked: WireRequest) -> WireAnswer:
        told = really(asked)
        if asked.operation in ("PutObject", "UploadPart"):
            written.append(asked)
        if asked.operation == "PutObject":
            return told._replace(headers={"ETag": ODD_TAG})
        return told._replace(body=re.sub(rb"<ETag>.*</ETag>", f"<ETag>{ODD_TAG}</ETag>".encode(), told.body))

    monkeypatch.setattr(wire, "send", send)
    return written


@pytest.mark.sampled(1)
@pytest.mark.parametrize("size", [1_000, LARGE])
def test_a_store_whose_tags_are_no_md5_is_read_back(
    moto_bucket: Bucket, cold: str, size: int, between: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a key of KMS: an ETag then looks like an md5, and is none."""
    odd, really = through(between, moto_bucket.server), obstore.put

    with_odd_tags(monkeypatch, odd)
    monkeypatch.setattr(obstore, "put", lambda *args, **named: {**really(*args, **named), "e_tag": ODD_TAG})
    job = put(moto_bucket, "x", some_bytes(size))._replace(target=f"{cold}/x")
    (copied,) = ObjectCopy(moto_bucket.server.settings, odd).copy([job])
    assert copied.fate is CopyFate.COPIED
    reads = [path for _, method, path in between.seen if method == "GET"]
    assert reads
    assert {path.partition("?")[0].rpartition("/")[2] for path in reads} == {"x"}
    assert ObjectVerify(moto_bucket.server.settings).verify([stored(copied)])[0].fate is CopyFate.PRESENT


def test_a_busy_store_that_loses_answers_gets_every_copy_once(moto_bucket: Bucket, cold: str, between: Proxy) -> None:
    settings = through(between, moto_bucket.server)
    sizes = [100 * number for number in range(12)] + [LARGE]
    jobs = [
        put(moto_bucket, f"{number}", some_bytes(size, number))._replace(target=f"{cold}/{number}")
        for number, size in enumerate(sizes)
    ]
    between.rules = [Rule("busy", share=0.15), Rule("drop", share=0.1), Rule("cut", share=0.05)]
    quick = Patience(attempts=40, base_delay_s=0.001, max_delay_s=0.01)
    for live in (moto_bucket.server.settings, settings):
        outcomes = ObjectCopy(live, settings, patience=quick).copy(jobs)
        assert {each.fate for each in outcomes} <= {CopyFate.COPIED, CopyFate.PRESENT}, outcomes
        assert [each.size for each in outcomes] == sizes
    between.rules = []
    assert between.counts["busy"] > 0
    assert between.counts["drop"] > 0
    for job in jobs:
        assert body(moto_bucket.server, job.target) == body(moto_bucket.server, job.source)


@pytest.mark.parametrize("method", ["PUT", "POST"])
def test_a_write_whose_answer_got_lost_is_found_there(
    moto_bucket: Bucket, cold: str, between: Proxy, method: str
) -> None:
    job = put(moto_bucket, "x", some_bytes(LARGE if method == "POST" else 9))._replace(target=f"{cold}/x")
    between.rules = [Rule("drop", when=lambda asked, path: asked == method and "uploads" not in path, times=1)]
    live = moto_bucket.server.settings
    quick = Patience(base_delay_s=0.01, max_delay_s=0.02)
    (outcome,) = ObjectCopy(live, through(between, moto_bucket.server), patience=quick).copy([job])
    assert outcome.fate in (CopyFate.COPIED, CopyFate.PRESENT), outcome
    assert between.counts["drop"] == 1
    assert body(moto_bucket.server, job.target) == body(moto_bucket.server, job.source)


def test_a_copy_that_was_stopped_leaves_no_parts(moto_bucket: Bucket, cold: str) -> None:
    job = put(moto_bucket, "x", some_bytes(LARGE))._replace(target=f"{cold}/x")
    asked = 0

    def runs_out() -> None:
        nonlocal asked
        asked += 1
        if asked == 3:
            raise LeaseHeld("the lease ran out")

    live = moto_bucket.server.settings
    with pytest.raises(LeaseHeld):
        ObjectCopy(live, {**live, "s3.connect-timeout": "6"}).copy([job], runs_out)
    left = client(moto_bucket.server).list_multipart_uploads(Bucket=cold.removeprefix("s3://"))
    assert "Uploads" not in left


def test_a_bucket_that_is_missing_is_raised(moto_bucket: Bucket, cold: str) -> None:
    job = put(moto_bucket, "x", b"x")
    live = moto_bucket.server.settings
    for settings in (live, {**live, "s3.connect-timeout": "6"}):
        from_nowhere = CopyJob("s3://no-such-bucket/x", f"{cold}/x", 1, "data")
        for broken in (job._replace(target="s3://no-such-bucket/x"), from_nowhere):
            with pytest.raises(NoSuchBucket):
                ObjectCopy(live, settings).copy([broken])
    (copied,) = ObjectCopy(live, live).copy([job._replace(target=f"{cold}/y")])
    with pytest.raises(NoSuchBucket):
        ObjectVerify(live).verify([stored(copied)._replace(target="s3://no-such-bucket/x")])


def test_copies_keep_to_the_pace_of_both_stores(moto_bucket: Bucket, cold: str) -> None:
    jobs = [put(moto_bucket, f"{each}", b"x")._replace(target=f"{cold}/{each}") for each in range(8)]
    live = moto_bucket.server.settings

    def throttle(said: str) -> Throttle:
        return Throttle(Lanes(StoreLimits.of(parse_policy(f"stores: {{{said}}}").stores)))

    many, far = LocalCopyMany(), {**live, "s3.connect-timeout": "6"}
    slow_writes = throttle(f"'{cold}': {{writes-per-second: 10}}")
    begun = time.monotonic()
    many.copy_many(jobs, ObjectCopy(live, far, target_throttle=slow_writes))
    assert time.monotonic() - begun >= 0.7
    slow_reads = throttle(f"'{moto_bucket.uri}': {{reads-per-second: 10}}")
    begun = time.monotonic()
    again = [each._replace(target=f"{each.target}-2") for each in jobs]
    many.copy_many(again, ObjectCopy(live, far, source_throttle=slow_reads))
    assert time.monotonic() - begun >= 0.7


@pytest.mark.sampled(1)
@pytest.mark.parametrize("operation", ["copy", "complete"])
def test_a_success_that_tells_of_a_failure_is_none(moto_bucket: Bucket, cold: str, operation: str) -> None:
    """S3 says that all is well before it begins to copy, and what went wrong where its answer belongs."""
    size = 9 if operation == "copy" else LARGE
    job = put(moto_bucket, "x", some_bytes(size))._replace(target=f"{cold}/x")
    live, once = moto_bucket.server.settings, Patience(attempts=1)
    with careless(moto_bucket.server.url) as lax:
        far = {**live, "s3.endpoint": lax.url}

        def fail(method: str, path: str, sent: bytes, answer: tuple[int, bytes]) -> tuple[int, bytes]:
            failed = b"Result>" in answer[1] and b"Initiate" not in answer[1]
            return (200, b"<Error><Code>InternalError</Code></Error>") if failed else answer

        lax.change = fail
        (outcome,) = ObjectCopy(far if operation == "copy" else live, far, patience=once).copy([job])
    assert outcome.fate is CopyFate.FAILED
    assert "InternalError" in outcome.error
