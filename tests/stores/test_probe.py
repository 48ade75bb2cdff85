"""The probe finds out what a server really does, also where it lies, and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from firnline.errors import AccessDenied, BadCredentials, NoSuchBucket, RefusedForSafety, Unreachable
from firnline.ops.table.context import refuse_unfit, unfit
from firnline.ports.delete import Doomed
from firnline.ports.probe import Verdict
from firnline.stores.delete import ObjectDelete
from firnline.stores.objects import ObjectStores
from firnline.stores.probe import StoreProbe
from harness.servers import Rule, proxy
from harness.servers.fixtures import unique
from harness.servers.moto import enforce, moto, user
from harness.servers.process import Server
from harness.servers.s3 import client, make_bucket

from .careless import Answer, Careless, careless


@pytest.fixture(params=["moto_server", "versitygw_server"])
def served(request: pytest.FixtureRequest) -> Server:
    server: Server = request.getfixturevalue(request.param)
    return server


@pytest.fixture
def lax(moto_server: Server) -> Iterator[tuple[Careless, dict[str, str]]]:
    with careless(moto_server.url) as server:
        yield server, {**moto_server.settings, "s3.endpoint": server.url}


def test_an_honest_server_is_trusted_and_left_as_it_was(served: Server) -> None:
    root = make_bucket(served, unique("probe"))
    found = StoreProbe(served.settings).probe(f"{root}/t/_firnline", [f"{root}/t/data"], replaces=True)
    verdicts = {name: finding.verdict for name, finding in found.findings().items()}
    assert verdicts == {
        "list": Verdict.YES,
        "get": Verdict.YES,
        "put": Verdict.YES,
        "delete": Verdict.YES,
        "put if absent refuses": Verdict.YES,
        "put honours If-Match": Verdict.YES,
        "delete honours If-Match": Verdict.YES,
        "clock agrees": Verdict.YES,
        "versioned": Verdict.NO,
        "object lock": Verdict.NO,
    }
    assert all(finding.evidence for finding in found.findings().values())
    assert unfit(found, deletes=True) is None
    assert list(ObjectStores(served.settings).list(root)) == []


def test_a_server_that_forgets_if_match_is_not_trusted_with_it(
    lax: tuple[Careless, dict[str, str]], moto_server: Server
) -> None:
    server, settings = lax
    server.forgets = ("if-match",)
    root = make_bucket(moto_server, unique("probe"))
    found = StoreProbe(settings).probe(f"{root}/_firnline")
    assert found.put_if_match.verdict is Verdict.UNKNOWN  # no run rests on it: not asked
    assert found.if_match_delete.verdict is Verdict.NO
    assert "removed the object" in found.if_match_delete.evidence
    assert "read just before" in found.paths()["delete of one very object"]
    assert unfit(found, deletes=True) is None


def test_a_server_that_forgets_if_match_of_a_write_is_not_trusted_with_pointers(
    lax: tuple[Careless, dict[str, str]], moto_server: Server
) -> None:
    server, settings = lax
    server.forgets, server.forgets_of = ("if-match",), ("PUT",)
    root = make_bucket(moto_server, unique("probe"))
    found = StoreProbe(settings).probe(f"{root}/_firnline", replaces=True)
    assert found.put_if_match.verdict is Verdict.NO
    assert "stale ETag replaced" in found.put_if_match.evidence
    assert found.paths()["pointers"].startswith("none")
    assert found.if_match_delete
    assert unfit(found, deletes=True) is None
    assert list(ObjectStores(settings).list(root)) == []


def test_a_server_that_lets_two_racing_writers_replace_an_object_is_not_trusted_with_pointers(
    lax: tuple[Careless, dict[str, str]], moto_server: Server
) -> None:
    """It compares, and writes a moment later: several that race all find the object as they read it."""
    server, settings = lax
    writes: list[str] = []

    def then_forget(method: str, path: str) -> None:
        if method == "PUT" and path.endswith("/replaced"):
            writes.append(path)
            server.forgets = ("if-match",) if len(writes) == 3 else server.forgets  # from the race on

    server.before = then_forget
    root = make_bucket(moto_server, unique("probe"))
    found = StoreProbe(settings).probe(f"{root}/_firnline", replaces=True)
    assert found.put_if_match.verdict is Verdict.NO
    assert "racing" in found.put_if_match.evidence
    assert found.put_if_absent


def test_a_server_that_forgets_if_none_match_cannot_keep_a_lease(
    lax: tuple[Careless, dict[str, str]], moto_server: Server
) -> None:
    server, settings = lax
    server.forgets = ("if-none-match",)
    root = make_bucket(moto_server, unique("probe"))
    found = StoreProbe(settings).probe(f"{root}/_firnline")
    assert found.put_if_absent.verdict is Verdict.NO
    with pytest.raises(RefusedForSafety, match="lease"):
        refuse_unfit(found, deletes=False)


def test_what_is_not_answered_is_not_trusted(lax: tuple[Careless, dict[str, str]], moto_server: Server) -> None:
    server, settings = lax

    def no_conditions(method: str, path: str, body: bytes, answer: Answer) -> Answer:
        return (501, b"<Error><Code>NotImplemented</Code></Error>") if answer[0] == 412 else answer

    server.change = no_conditions
    root = make_bucket(moto_server, unique("probe"))
    found = StoreProbe(settings).probe(f"{root}/_firnline", replaces=True)
    assert found.put_if_absent.verdict is Verdict.UNKNOWN
    assert not found.put_if_absent
    assert found.put_if_match.verdict is Verdict.UNKNOWN
    assert not found.if_match_delete
    assert isinstance(unfit(found, deletes=False), RefusedForSafety)


def test_versions_and_locks_are_seen(moto_server: Server) -> None:
    probe = StoreProbe(moto_server.settings)
    plain = make_bucket(moto_server, unique("plain"))
    versioned = make_bucket(moto_server, unique("versioned"), versioned=True)
    locked = make_bucket(moto_server, unique("locked"), locked=True)
    assert probe.surroundings(plain).warnings() == ()
    assert "frees nothing" in probe.surroundings(versioned).warnings()[0]
    assert "deletes may fail" in probe.surroundings(locked).warnings()[-1]


def test_in_a_versioned_bucket_no_note_stays_beside_the_data(moto_server: Server) -> None:
    root = make_bucket(moto_server, unique("versioned"), versioned=True)
    StoreProbe(moto_server.settings).probe(f"{root}/t/_firnline", [f"{root}/t/data"])
    left = client(moto_server).list_object_versions(Bucket=root.removeprefix("s3://"), Prefix="t/data")
    assert left.get("Versions", []) + left.get("DeleteMarkers", []) == []


def test_what_makes_no_sense_to_probe_is_an_error_of_its_own(served: Server) -> None:
    with pytest.raises(NoSuchBucket, match="no bucket s3://not-there-at-all"):
        StoreProbe(served.settings).probe("s3://not-there-at-all/_firnline")
    nowhere = {**served.settings, "s3.endpoint": "http://127.0.0.1:9"}
    with pytest.raises(Unreachable, match="no answer"):
        StoreProbe(nowhere).probe("s3://any/_firnline")


def test_wrong_credentials_are_told(versitygw_server: Server) -> None:
    root = make_bucket(versitygw_server, unique("probe"))
    for wrong in ({"s3.secret-access-key": "wrong"}, {"s3.access-key-id": "stranger"}):
        with pytest.raises(BadCredentials, match="does not accept"):
            StoreProbe({**versitygw_server.settings, **wrong}).probe(f"{root}/_firnline")


def test_a_stranger_is_never_told_that_an_object_is_missing(versitygw_server: Server) -> None:
    """This server says 404 to a key it does not know, also where the object exists."""
    key = make_bucket(versitygw_server, unique("probe")) + "/x"
    ObjectStores(versitygw_server.settings).put(key, b"x")
    stranger = {**versitygw_server.settings, "s3.access-key-id": "stranger"}
    for ask in (ObjectStores(stranger).get, ObjectStores(stranger).head):
        with pytest.raises(BadCredentials):
            ask(key)
    with pytest.raises(BadCredentials):
        ObjectDelete(stranger).delete([Doomed(key)])
    assert ObjectStores(versitygw_server.settings).get(key) == b"x"


def test_local_files_cost_nothing() -> None:
    found = StoreProbe().probe("/nowhere/at/all/_firnline", ["/nowhere/at/all/data"])
    assert unfit(found, deletes=True) is None


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that enforces what each user may do: its own, since nobody else may then do anything."""
    with moto(tmp_path_factory.mktemp("strict")) as server:
        yield server


class TestPermissions:
    def probed(self, strict: Server, actions: list[str], within: str = "*") -> StoreProbe:
        bucket = "permissions"
        enforce(strict, on=False)
        if not any(each["Name"] == bucket for each in client(strict).list_buckets()["Buckets"]):
            make_bucket(strict, bucket)
        resources = [f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/{within}"]
        statement = {"Effect": "Allow", "Action": actions, "Resource": resources}
        limited = user(strict, unique("user"), {"Version": "2012-10-17", "Statement": [statement]})
        enforce(strict)
        return StoreProbe(limited.settings)

    def test_no_delete_is_found(self, strict: Server) -> None:
        probe = self.probed(strict, ["s3:ListBucket", "s3:GetObject", "s3:PutObject"])
        found = probe.probe("s3://permissions/t/_firnline", ["s3://permissions/t/data"])
        assert (found.put.verdict, found.delete.verdict) == (Verdict.YES, Verdict.NO)
        with pytest.raises(AccessDenied, match="cannot delete"):
            refuse_unfit(found, deletes=True)
        refuse_unfit(replace(found), deletes=False)

    def test_a_condition_that_may_not_be_tried_leaves_nothing(self, strict: Server) -> None:
        probe = self.probed(strict, ["s3:ListBucket", "s3:GetObject", "s3:PutObject"])
        found = probe.conditional_delete("s3://permissions/pointed/_pointers")
        assert found.verdict is Verdict.NO
        enforce(strict, on=False)
        assert list(ObjectStores(strict.settings).list("s3://permissions/pointed")) == []

    def test_delete_of_records_only_is_found(self, strict: Server) -> None:
        everything = ["s3:ListBucket", "s3:GetObject", "s3:PutObject", "s3:DeleteObject"]
        probe = self.probed(strict, everything, within="t/_firnline/*")
        found = probe.probe("s3://permissions/t/_firnline", ["s3://permissions/t/data"])
        assert found.delete.verdict is Verdict.NO
        assert "t/data" in found.delete.evidence

    def test_no_write_is_found(self, strict: Server) -> None:
        probe = self.probed(strict, ["s3:ListBucket", "s3:GetObject", "s3:DeleteObject"])
        found = probe.probe("s3://permissions/t/_firnline")
        assert found.put.verdict is Verdict.NO
        with pytest.raises(AccessDenied, match="cannot"):
            refuse_unfit(found, deletes=True)


def test_a_server_that_is_only_busy_or_silent_is_asked_again(moto_server: Server) -> None:
    """A 503 says nothing of permissions: taken for an answer, it would refuse every run on a busy day."""
    root = make_bucket(moto_server, unique("probe"))
    with proxy(moto_server.url, seed=3) as network:
        network.rules = [Rule("busy", share=0.3), Rule("cut", share=0.05)]
        settings = {**moto_server.settings, "s3.endpoint": network.url}
        found = StoreProbe(settings).probe(f"{root}/t/_firnline", [f"{root}/t/data", f"{root}/t/metadata"], True)
        assert network.counts["busy"] > 0
    assert unfit(found, deletes=True) is None
    assert found.put_if_match
    assert found.if_match_delete
