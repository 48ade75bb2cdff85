"""Objects of archive classes on moto, which lets them wait; and what only S3 itself says."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firnline.errors import NoSuchBucket, PermanentStoreError
from firnline.patience import Patience
from firnline.ports.thawing import Thaw, Warmth
from firnline.stores.copies.thawing import ObjectThaw
from firnline.stores.s3.places import open_s3
from firnline.testing.copies.thawing import ArchiveThawContract, ThawContract
from harness.servers.fixtures import Bucket
from harness.servers.moto import moto, slow_restores
from harness.servers.process import Server
from harness.servers.proxy import Rule, proxy
from harness.servers.s3 import client
from tests.stores.careless import Answer, careless
from tests.stores.test_local import OnDisk
from tests.stores.test_s3 import OnMoto

WAIT_S = 0.4
QUICK = Patience(base_delay_s=0.01, max_delay_s=0.02)


class TestFiles(OnDisk, ThawContract):
    @pytest.fixture
    def thaw(self) -> Thaw:
        return ObjectThaw()


@pytest.fixture(scope="module")
def slow_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with moto(tmp_path_factory.mktemp("slow")) as running:
        slow_restores(running, WAIT_S)
        yield running


@pytest.mark.xdist_group("slow restores")
class TestArchiveClasses(OnMoto, ArchiveThawContract):
    @pytest.fixture
    def served(self, slow_server: Server) -> Server:
        return slow_server

    @pytest.fixture
    def thaw(self, served: Server) -> Thaw:
        return ObjectThaw(served.settings)

    def frozen(self, key: str, storage_class: str) -> None:
        bucket, _, name = key.removeprefix("s3://").partition("/")
        self.s3.put_object(Bucket=bucket, Key=name, Body=b"frozen", StorageClass=storage_class)
        time.sleep(WAIT_S)

    def wait(self) -> None:
        time.sleep(WAIT_S)


def freeze(bucket: Bucket, storage_class: str = "DEEP_ARCHIVE") -> str:
    name = bucket.uri.removeprefix("s3://")
    client(bucket.server).put_object(Bucket=name, Key="x", Body=b"frozen", StorageClass=storage_class)
    return f"{bucket.uri}/x"


def days_left(bucket: Bucket) -> int:
    said = client(bucket.server).head_object(Bucket=bucket.uri.removeprefix("s3://"), Key="x")["Restore"]
    expiry = time.mktime(time.strptime(said.partition('expiry-date="')[2], '%a, %d %b %Y %H:%M:%S GMT"'))
    return round((expiry - time.mktime(time.gmtime())) / 86_400)


def test_the_days_of_a_readable_copy_are_extended(moto_bucket: Bucket) -> None:
    key, thaw = freeze(moto_bucket), ObjectThaw(moto_bucket.server.settings)
    thaw.request(key, 2, "bulk")
    assert days_left(moto_bucket) == 2
    thaw.request(key, 9, "standard")
    assert days_left(moto_bucket) == 9


def test_a_request_whose_answer_got_lost_is_taken_for_done(moto_bucket: Bucket) -> None:
    """S3 refuses the second one: the first is under way."""
    key, live = freeze(moto_bucket), moto_bucket.server.settings
    sent = 0

    def refused(method: str, path: str, body: bytes, answer: Answer) -> Answer:
        nonlocal sent
        sent += method == "POST"
        said = b"<Error><Code>RestoreAlreadyInProgress</Code><Message>already in progress</Message></Error>"
        return (409, said) if method == "POST" else answer

    with careless(live["s3.endpoint"]) as told:
        told.change = refused
        ObjectThaw({**live, "s3.endpoint": told.url}, patience=QUICK).request(key, 1, "bulk")
    assert sent == 1
    with proxy(live["s3.endpoint"]) as between:
        between.rules = [Rule("drop", when=lambda method, path: method == "POST", times=1), Rule("busy", share=0.3)]
        thaw = ObjectThaw({**live, "s3.endpoint": between.url}, patience=Patience(attempts=20, base_delay_s=0.001))
        thaw.request(key, 1, "bulk")
        assert between.counts["drop"] == 1
        assert thaw.warmth(key) is Warmth.READABLE


def test_a_bucket_that_is_missing_is_raised(moto_server: Server) -> None:
    thaw = ObjectThaw(moto_server.settings)
    with pytest.raises(NoSuchBucket):
        thaw.warmth("s3://no-such-bucket/x")
    with pytest.raises(NoSuchBucket):
        thaw.request("s3://no-such-bucket/x", 1, "bulk")


@pytest.mark.parametrize("tier", ["ARCHIVE_ACCESS", "DEEP_ARCHIVE_ACCESS"])
def test_what_s3_moved_by_itself_comes_back_for_good(moto_bucket: Bucket, tier: str) -> None:
    """No server here moves objects by itself, so its answers are made: a request of this kind may name no days."""
    key = freeze(moto_bucket, "INTELLIGENT_TIERING")
    settings = {**moto_bucket.server.settings, "s3.connect-timeout": "7" if tier.startswith("D") else "8"}
    events, asked = open_s3(settings).client.meta.events, []

    def moved(parsed: dict[str, Any], **_: Any) -> None:
        parsed["ArchiveStatus"] = tier

    def note(params: dict[str, Any], **_: Any) -> None:
        asked.append(params["RestoreRequest"])

    thaw = ObjectThaw(settings, patience=Patience(attempts=1))
    assert thaw.warmth(key) is Warmth.READABLE
    events.register("after-call.s3.HeadObject", moved)
    events.register("before-parameter-build.s3.RestoreObject", note)
    assert thaw.warmth(key) is Warmth.FROZEN
    with pytest.raises(PermanentStoreError):  # moto does not know of it
        thaw.request(key, 3, "bulk")
    assert asked == [{"GlacierJobParameters": {"Tier": "Bulk"}}]
    if tier == "DEEP_ARCHIVE_ACCESS":
        with pytest.raises(PermanentStoreError, match="cannot be restored 'expedited'"):
            thaw.request(key, 3, "expedited")


def test_a_file_that_is_missing_is_no_matter_to_a_request(tmp_path: Path) -> None:
    ObjectThaw().request(f"{tmp_path}/missing", 1, "bulk")
