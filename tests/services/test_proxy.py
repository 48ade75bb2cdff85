"""The proxy that the tests of failures trust: each fault does what it says, and signed requests pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
import requests

from harness.servers import Proxy, Rule, proxy
from harness.servers.fixtures import Bucket
from harness.servers.s3 import client, s3_settings


@pytest.fixture
def faulty(versitygw_bucket: Bucket) -> Iterator[Proxy]:
    with proxy(versitygw_bucket.server.url) as running:
        yield running


def _through(bucket: Bucket, faulty: Proxy) -> Bucket:
    return replace(bucket, server=replace(bucket.server, settings=s3_settings(faulty.url)))


def _put(bucket: Bucket, key: str, body: bytes = b"x") -> None:
    client(bucket.server).put_object(Bucket=bucket.uri.removeprefix("s3://"), Key=key, Body=body)


def _keys(bucket: Bucket) -> set[str]:
    listed = client(bucket.server).list_objects_v2(Bucket=bucket.uri.removeprefix("s3://"))
    return {each["Key"] for each in listed.get("Contents", [])}


def test_signed_requests_pass_and_are_counted(versitygw_bucket: Bucket, faulty: Proxy) -> None:
    _put(_through(versitygw_bucket, faulty), "a", b"0" * 3_000_000)
    assert _keys(_through(versitygw_bucket, faulty)) == {"a"}
    assert faulty.counts == {"passed": 2}


@pytest.mark.parametrize("fault", ["busy", "cut"])
def test_the_server_never_sees_what_is_refused_or_cut(fault: str, versitygw_bucket: Bucket, faulty: Proxy) -> None:
    faulty.rules = [Rule(fault, when=lambda method, path: method == "PUT")]  # type: ignore[arg-type]
    with pytest.raises(Exception, match=r"SlowDown|[Cc]onnection"):
        _put(_through(versitygw_bucket, faulty), "a")
    assert _keys(versitygw_bucket) == set()
    assert faulty.counts[fault] == 3, "boto3's own tries"


def test_a_dropped_answer_is_of_a_request_that_was_done(versitygw_bucket: Bucket, faulty: Proxy) -> None:
    faulty.rules = [Rule("drop", when=lambda method, path: path.endswith("/a"), times=1)]
    answer = requests.get(faulty.url, timeout=10)
    assert answer.status_code == 403, "not signed, and answered"
    _put(_through(versitygw_bucket, faulty), "a")
    assert [each[:2] for each in faulty.seen] == [("passed", "GET"), ("drop", "PUT"), ("passed", "PUT")]
    assert _keys(versitygw_bucket) == {"a"}


def test_a_share_of_the_requests_fails_the_same_way_with_the_same_seed(versitygw_bucket: Bucket) -> None:
    def fates() -> list[str]:
        with proxy(versitygw_bucket.server.url, seed=7) as faulty:
            faulty.rules = [Rule("busy", share=0.3), Rule("delay", share=0.1, seconds=0.01)]
            statuses = [requests.get(faulty.url, timeout=10).status_code for _ in range(60)]
            assert statuses.count(503) == faulty.counts["busy"]
            assert faulty.counts["delay"] > 0
            return [each[0] for each in faulty.seen]

    first = fates()
    assert first == fates()
    assert 5 < first.count("busy") < 30
