"""Bulk deletes under real failures: what each key's end is said to be is what it was."""

from __future__ import annotations

import re
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from hashlib import md5
from typing import Any

import botocore.exceptions
import pytest

from firnline.errors import AccessDenied, BadCredentials, ExpiredCredentials, NoSuchBucket, ObjectNotFound, Unreachable
from firnline.patience import Patience
from firnline.ports.delete import Doomed, Fate
from firnline.stores.delete import ObjectDelete
from firnline.stores.objects import ObjectStores
from firnline.stores.s3.deletes import bulk_request
from firnline.stores.s3.places import open_s3
from firnline.stores.throttle import Lanes, Rates, Throttle
from firnline.stores.wrappers.retry import Retrying
from harness.curves import watched
from harness.servers.fixtures import unique
from harness.servers.process import Server
from harness.servers.proxy import Rule, proxy
from harness.servers.s3 import client, make_bucket

from .careless import Answer, Careless, careless

QUICK = Patience(attempts=8, base_delay_s=0.001, max_delay_s=0.01)
FAST = Lanes(defaults={"s3": Rates(1_000_000.0, 1_000_000.0)})
_DELETED = re.compile(rb"<Deleted><Key>([^<]*)</Key>.*?</Deleted>", re.DOTALL)


@pytest.fixture
def root(moto_server: Server) -> str:
    return make_bucket(moto_server, unique("bulk")) + "/lake"


@pytest.fixture
def lax(moto_server: Server) -> Iterator[Careless]:
    with careless(moto_server.url) as server:
        yield server


def filled(server: Server, root: str, number: int) -> list[Doomed]:
    keys = [f"{root}/{each:05d}" for each in range(number)]
    store = ObjectStores(server.settings)
    for key in keys:
        store.put(key, b"x")
    return [Doomed(key) for key in keys]


def deleter(server: Server, url: str) -> ObjectDelete:
    return ObjectDelete({**server.settings, "s3.endpoint": url}, throttle=Throttle(FAST), patience=QUICK)


def left(server: Server, root: str) -> list[str]:
    return sorted(found.key for found in ObjectStores(server.settings).list(root))


def each_key(change: Any) -> Any:
    """Returns a change of the answers to bulk deletes: `change(name)` is None, or what is said instead of Deleted."""

    def answer(method: str, path: str, body: bytes, said: Answer) -> Answer:
        if method != "POST" or "delete" not in path:
            return said

        def one(match: re.Match[bytes]) -> bytes:
            instead: bytes | None = change(match[1].decode())
            return match[0] if instead is None else instead

        return said[0], _DELETED.sub(one, said[1])

    return answer


def error(name: str, code: str) -> bytes:
    return f"<Error><Key>{name}</Key><Code>{code}</Code><Message>as asked</Message></Error>".encode()


def test_errors_are_read_key_by_key(moto_server: Server, lax: Careless, root: str) -> None:
    doomed = filled(moto_server, root, 20)
    lax.change = each_key(lambda name: error(name, "AccessDenied") if name.endswith("3") else None)
    outcomes = deleter(moto_server, lax.url).delete(doomed)
    assert [outcome.fate is Fate.FAILED for outcome in outcomes] == [each.key.endswith("3") for each in doomed]
    assert all("AccessDenied" in outcome.error for outcome in outcomes if outcome.fate is Fate.FAILED)
    assert len(lax.bodies) == 1, "what is denied is not asked again"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("code", ["SlowDown", "InternalError", "ServiceUnavailable"])
def test_what_may_pass_is_sent_again_and_only_that(moto_server: Server, lax: Careless, root: str, code: str) -> None:
    doomed = filled(moto_server, root, 20)
    seen: Counter[str] = Counter()

    def twice(name: str) -> bytes | None:
        seen[name] += 1
        return error(name, code) if name.endswith("3") and seen[name] < 3 else None

    lax.change = each_key(twice)
    under_test = deleter(moto_server, lax.url)
    throttle = watched(under_test)
    assert {outcome.fate for outcome in under_test.delete(doomed)} == {Fate.DELETED}
    assert {name[-1]: count for name, count in seen.items() if count > 1} == {"3": 3}
    slowed = [moment.event for moment in throttle.curve].count("halved")
    assert slowed == (0 if code == "InternalError" else 1)


def test_a_key_that_is_in_neither_list_is_not_taken_for_gone(moto_server: Server, lax: Careless, root: str) -> None:
    doomed = filled(moto_server, root, 5)
    lax.change = each_key(lambda name: b"" if name.endswith("2") else None)
    fates = [outcome.fate for outcome in deleter(moto_server, lax.url).delete(doomed)]
    assert fates == [Fate.DELETED, Fate.DELETED, Fate.FAILED, Fate.DELETED, Fate.DELETED]


def test_lost_answers_cut_lines_and_busy_stores(moto_server: Server, root: str) -> None:
    doomed = filled(moto_server, root, 600)
    other = filled(moto_server, root + "2", 3)
    with proxy(moto_server.url, seed=7) as faulty:
        faulty.rules = [Rule("busy", share=0.3), Rule("cut", share=0.1), Rule("drop", share=0.2)]
        under_test = deleter(moto_server, faulty.url)
        throttle = watched(under_test)
        for start in range(0, 600, 50):
            outcomes = under_test.delete(doomed[start : start + 50])
            assert {outcome.fate for outcome in outcomes} == {Fate.DELETED}
        assert {"busy", "cut", "drop"} <= set(faulty.counts)
    assert left(moto_server, root) == []
    assert left(moto_server, root + "2") == [each.key for each in other]
    assert {"halved", "ok"} <= {moment.event for moment in throttle.curve}


def test_a_store_that_never_recovers_ends_as_failed(moto_server: Server, root: str) -> None:
    doomed = filled(moto_server, root, 3)
    with proxy(moto_server.url) as faulty:
        faulty.rules = [Rule("busy")]
        outcomes = deleter(moto_server, faulty.url).delete(doomed)
    assert {outcome.fate for outcome in outcomes} == {Fate.FAILED}
    assert left(moto_server, root) == [each.key for each in doomed]


def test_records_survive_busy_stores_and_cut_lines(moto_server: Server, root: str) -> None:
    with proxy(moto_server.url, seed=3) as faulty:
        faulty.rules = [Rule("busy", share=0.2), Rule("cut", share=0.1), Rule("drop", share=0.1)]
        settings = {**moto_server.settings, "s3.endpoint": faulty.url}
        store = Retrying(ObjectStores(settings), Patience(attempts=12, base_delay_s=0.001, max_delay_s=0.01))
        for number in range(40):
            store.put_if_absent(f"{root}/events/{number}", b"%d written once" % number)
            assert store.get(f"{root}/events/{number}") == b"%d written once" % number
        assert len(list(store.list(f"{root}/events"))) == 40
        assert {"busy", "cut", "drop"} <= set(faulty.counts)


class TestErrors:
    """Each has its own kind: what can help differs."""

    def test_a_missing_bucket_is_never_a_missing_object(self, moto_server: Server) -> None:
        store = ObjectStores(moto_server.settings)
        for ask in (store.get, store.head, lambda key: list(store.list(key)), lambda key: store.put(key, b"x")):
            with pytest.raises(NoSuchBucket, match="no bucket s3://no-such-bucket-here"):
                ask("s3://no-such-bucket-here/x")
        with pytest.raises(NoSuchBucket):
            ObjectDelete(moto_server.settings).delete([Doomed("s3://no-such-bucket-here/x")])

    def test_a_missing_object_is_one_where_the_bucket_exists(self, moto_server: Server, root: str) -> None:
        with pytest.raises(ObjectNotFound):
            ObjectStores(moto_server.settings).head(f"{root}/none")

    @pytest.mark.parametrize(
        ("code", "kind"),
        [
            ("ExpiredToken", ExpiredCredentials),
            ("InvalidAccessKeyId", BadCredentials),
            ("SignatureDoesNotMatch", BadCredentials),
            ("AccessDenied", AccessDenied),
        ],
    )
    def test_what_the_store_says(
        self, moto_server: Server, lax: Careless, root: str, code: str, kind: type[Exception]
    ) -> None:
        doomed = filled(moto_server, root, 2)
        lax.change = lambda method, path, body, answer: (
            403,
            f"<Error><Code>{code}</Code><Message>as asked</Message></Error>".encode(),
        )
        settings = {**moto_server.settings, "s3.endpoint": lax.url}
        with pytest.raises(kind) as told:
            Retrying(ObjectStores(settings)).get(doomed[0].key)
        assert told.value.hint  # type: ignore[attr-defined]
        assert len(lax.bodies) == 1, "asking again cannot help"
        if kind is AccessDenied:
            assert {each.fate for each in deleter(moto_server, lax.url).delete(doomed)} == {Fate.FAILED}
        else:
            with pytest.raises(kind):
                deleter(moto_server, lax.url).delete(doomed)

    def test_nobody_there(self, moto_server: Server) -> None:
        settings = {**moto_server.settings, "s3.endpoint": "http://127.0.0.1:9"}
        with pytest.raises(
            Unreachable, match=r"http://127\.0\.0\.1:9 does not answer: nobody accepts connections there"
        ):
            ObjectStores(settings).get("s3://mine/x")
        said = ObjectDelete(settings, patience=QUICK).delete([Doomed("s3://mine/x")])[0]
        assert said.fate is Fate.FAILED
        assert "no answer" in said.error

    def test_messages_show_no_query(self, moto_server: Server, lax: Careless, root: str) -> None:
        lax.change = lambda method, path, body, answer: (400, b"<Error><Code>Odd</Code></Error>")
        with pytest.raises(Exception, match="failed") as told:
            list(ObjectStores({**moto_server.settings, "s3.endpoint": lax.url}).list(root))
        assert "?" not in str(told.value)


def test_an_older_server_gets_the_checksum_it_knows(moto_server: Server, root: str) -> None:
    under_test = ObjectDelete(moto_server.settings)
    asked = under_test._buckets.s3().wire.request(bulk_request("b", b"body"))
    assert asked.headers["Content-MD5"] == b64encode(md5(b"body").digest()).decode()
    under_test.delete(filled(moto_server, root, 1))
    with pytest.raises(botocore.exceptions.ClientError):
        client(moto_server).head_object(Bucket=root.split("/")[2], Key="lake/00000")


@pytest.mark.parametrize(
    ("settings", "address"),
    [
        ({"s3.region": "eu-west-1"}, "https://lake.s3.eu-west-1.amazonaws.com/?delete"),
        ({"s3.endpoint": "http://127.0.0.1:9"}, "http://127.0.0.1:9/lake?delete"),
        ({"s3.endpoint": "http://s3.local", "s3.force-virtual-addressing": "true"}, "http://lake.s3.local/?delete"),
    ],
)
def test_a_bulk_delete_goes_where_botocore_says(settings: dict[str, str], address: str) -> None:
    keys = {"s3.access-key-id": "a", "s3.secret-access-key": "b", "s3.session-token": "t"}
    asked = open_s3({**keys, **settings}).wire.request(bulk_request("lake", b""))
    assert asked.url == address
    assert asked.headers["X-Amz-Security-Token"] == "t"
    assert asked.headers["Authorization"].startswith("AWS4-HMAC-SHA256 ")


def test_nothing_is_signed_for_a_stranger() -> None:
    asked = open_s3({"s3.endpoint": "http://127.0.0.1:9", "s3.anonymous": "true"}).wire.request(
        bulk_request("lake", b"")
    )
    assert "Authorization" not in asked.headers
