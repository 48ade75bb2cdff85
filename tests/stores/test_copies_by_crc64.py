"""Copies between buckets that tell a CRC64 of every object: nothing is computed here, and nothing read again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import obstore
import pytest

from firnline.ports.copying import CopyFate, CopyJob
from firnline.stores.copies.copying import ObjectCopy
from firnline.stores.copies.verifying import ObjectVerify
from firnline.stores.s3.places import open_s3
from firnline.stores.s3.requests import WireAnswer, WireRequest
from firnline.testing.copies.contract import LARGE, flipped, some_bytes, stored
from harness.servers.fixtures import Bucket, unique
from harness.servers.process import Server
from harness.servers.s3 import make_bucket

from .test_copies import another_way
from .test_copies_on_s3 import PART, body, put_in_parts

Change = Callable[[WireRequest, WireAnswer], WireAnswer]


@pytest.fixture
def cold(versitygw_server: Server) -> str:
    return make_bucket(versitygw_server, unique("cold"))


@pytest.fixture
def live(versitygw_bucket: Bucket) -> Bucket:
    return versitygw_bucket


def listen(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], change: Change | None = None
) -> list[WireRequest]:
    """Returns what is sent from now on; `change` may replace what is answered."""
    wire, seen = open_s3(settings).wire, list[WireRequest]()
    really = wire.send

    def send(asked: WireRequest) -> WireAnswer:
        seen.append(asked)
        told = really(asked)
        return told if change is None else change(asked, told)

    monkeypatch.setattr(wire, "send", send)
    return seen


def put(bucket: Bucket, name: str, data: bytes) -> CopyJob:
    """Writes a source at once and without a checksum: the server makes one, as S3 does. Boto3 sends another kind."""
    opened = open_s3(bucket.server.settings).bucket(bucket.uri.removeprefix("s3://"), 0)
    obstore.put(opened, name, data, use_multipart=False)
    return CopyJob(f"{bucket.uri}/{name}", "", len(data), "data")


def refuse_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    def get(*args: Any, **named: Any) -> Any:
        raise AssertionError("nothing needs to be read")

    monkeypatch.setattr(obstore, "get", get)


def another_crc64(asked: WireRequest, told: WireAnswer) -> WireAnswer:
    head, tag, rest = told.body.partition(b"<ChecksumCRC64NVME>")
    return told._replace(body=head + tag + b"AAAAAAAAAAA=" + rest[12:]) if tag else told


def test_a_server_copies_at_once_what_was_written_in_parts(
    live: Bucket, cold: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, data = live.server.settings, [some_bytes(PART, 1), some_bytes(PART + 7, 2), b"x"]
    job = put_in_parts(live, "x", data)._replace(target=f"{cold}/x")
    refuse_reads(monkeypatch)
    seen, copier = listen(monkeypatch, settings), ObjectCopy(settings, settings)
    (copied,) = copier.copy([job])
    assert (copied.fate, copied.error) == (CopyFate.COPIED, "")
    assert [each.operation for each in seen] == ["HeadObject", "CopyObject"]
    assert copier.copy([job]) == [copied._replace(fate=CopyFate.PRESENT)]
    assert ObjectVerify(settings).verify([stored(copied)])[0].fate is CopyFate.PRESENT
    assert body(live.server, job.target) == b"".join(data)


def test_a_copy_of_the_server_whose_crc64_differs_is_not_believed(
    live: Bucket, cold: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer is a lie: what lies there is asked for once more, and is the same."""
    settings = live.server.settings
    job = put_in_parts(live, "x", [some_bytes(PART), b"x"])._replace(target=f"{cold}/x")
    seen = listen(monkeypatch, settings, another_crc64)
    (copied,) = ObjectCopy(settings, settings).copy([job])
    assert copied.fate is CopyFate.COPIED
    assert seen[-1].operation == "HeadObject"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("parts", [False, True], ids=["at once", "in parts"])
def test_a_stream_is_summed_until_the_bucket_was_seen_to_do_it(
    live: Bucket, cold: str, parts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, elsewhere = live.server.settings, another_way(live.server)
    contents = [some_bytes(LARGE, number) for number in range(3)]
    jobs = [
        (put_in_parts(live, f"{number}", [data[:PART], data[PART:]]) if parts else put(live, f"{number}", data))
        ._replace(target=f"{cold}/{number}")
        for number, data in enumerate(contents)
    ]  # fmt: skip
    seen, copier = listen(monkeypatch, elsewhere), ObjectCopy(settings, elsewhere)
    copied = copier.copy(jobs)
    assert {each.fate for each in copied} == {CopyFate.COPIED}, copied
    sent = ["Content-MD5" in each.headers for each in seen if each.operation == "UploadPart"]
    assert sent == [True, True, False, False, False, False]
    assert {each.checksum.partition(":")[0] for each in copied} == {"md5/8388608"}
    assert [body(live.server, job.target) for job in jobs] == contents
    refuse_reads(monkeypatch)
    assert copier.copy(jobs) == [each._replace(fate=CopyFate.PRESENT) for each in copied]


def test_what_is_claimed_of_a_stream_is_what_its_bytes_have(live: Bucket, cold: str) -> None:
    """The checksum that nobody here computed is the one that reading gives."""
    settings, elsewhere = live.server.settings, another_way(live.server)
    jobs = [put(live, f"{each}", some_bytes(LARGE, each))._replace(target=f"{cold}/{each}") for each in range(2)]
    by_md5 = ObjectCopy(settings, elsewhere).copy([jobs[1]._replace(target=f"{cold}/by-md5")])[0]
    assert ObjectCopy(settings, elsewhere).copy(jobs)[1].checksum == by_md5.checksum


def test_a_stream_whose_crc64_differs_fails(live: Bucket, cold: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settings, elsewhere = live.server.settings, another_way(live.server)
    jobs = [put(live, f"{each}", some_bytes(LARGE, each))._replace(target=f"{cold}/{each}") for each in range(2)]
    copier = ObjectCopy(settings, elsewhere)
    assert copier.copy(jobs[:1])[0].fate is CopyFate.COPIED
    listen(monkeypatch, elsewhere, another_crc64)
    (failed,) = copier.copy(jobs[1:])
    assert failed.fate is CopyFate.FAILED
    assert "another CRC64" in failed.error


@pytest.mark.parametrize("way", ["by the server", "streamed"])
def test_one_bit_is_seen(live: Bucket, cold: str, way: str) -> None:
    settings = live.server.settings
    data = some_bytes(LARGE)
    source = put_in_parts(live, "x", [data[:PART], data[PART:]])
    copier = ObjectCopy(settings, settings if way == "by the server" else another_way(live.server))
    other = put(Bucket(live.server, cold), "x", flipped(data, LARGE - 1))
    (outcome,) = copier.copy([CopyJob(source.source, other.source, LARGE, "data")])
    assert outcome.fate is CopyFate.FAILED
    assert "another object lies there" in outcome.error
