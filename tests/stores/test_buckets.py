"""What obstore reaches keeps the store's contract; memory stands in for a bucket."""

from __future__ import annotations

import pickle
import socket
from uuid import uuid4

import obstore
import pytest

from firnline.errors import StoreError, Unreachable
from firnline.ports.delete import Doomed, Fate
from firnline.ports.stores import ReadWrite
from firnline.stores.buckets import Buckets, memory
from firnline.stores.delete import ObjectDelete
from firnline.stores.keys import object_key
from firnline.stores.objects import ObjectStores
from firnline.testing.deletes import DeleteContract
from firnline.testing.stores import SideDoor, StoreContract

KEYS = {"s3.access-key-id": "somebody", "s3.secret-access-key": "a secret"}


class InMemory(SideDoor):
    @pytest.fixture
    def root(self) -> str:
        return f"memory://{uuid4().hex}/lake"

    def raw_put(self, key: str, data: bytes) -> None:
        authority, _, name = key.removeprefix("memory://").partition("/")
        obstore.put(memory(authority), name, data)

    def raw_get(self, key: str) -> bytes:
        authority, _, name = key.removeprefix("memory://").partition("/")
        try:
            return bytes(obstore.get(memory(authority), name).bytes())
        except FileNotFoundError as error:
            raise KeyError(key) from error

    def etag(self, key: str) -> str:
        return ObjectStores().head(key).etag or ""


class TestMemory(InMemory, StoreContract):
    @pytest.fixture
    def store(self) -> ReadWrite:
        return ObjectStores()


class TestMemoryDelete(InMemory, DeleteContract):
    folder_fates = frozenset({Fate.FAILED, Fate.MISSING})

    @pytest.fixture
    def deleter(self) -> ObjectDelete:
        return ObjectDelete()


def test_a_whole_memory_can_be_listed() -> None:
    name = f"memory://{uuid4().hex}"
    ObjectStores().put(f"{name}/a/x", b"x")
    assert [found.key for found in ObjectStores().list(name)] == [f"{name}/a/x"]
    assert [found.key for found in ObjectStores().list(f"{name}/")] == [f"{name}/a/x"]


def test_a_doubled_slash_is_refused_rather_than_taken_for_its_neighbour() -> None:
    name = f"memory://{uuid4().hex}"
    store = ObjectStores()
    store.put(f"{name}/a/x", b"x")
    for refused in (
        lambda: store.get(f"{name}/a//x"),
        lambda: store.head(f"{name}//a/x"),
        lambda: store.put(f"{name}/a//x", b"y"),
        lambda: list(store.list(f"{name}/a//")),
    ):
        with pytest.raises(StoreError, match="doubled slash"):
            refused()
    assert ObjectDelete().delete([Doomed(f"{name}/a//x")])[0].fate is Fate.FAILED
    assert store.get(f"{name}/a/x") == b"x"


def test_s3_spellings_share_one_opened_bucket() -> None:
    buckets = Buckets({"s3.region": "eu-north-1", **KEYS})
    mine = buckets.opened(object_key("s3://mine/x"))
    assert buckets.opened(object_key("s3a://mine/y")) is mine
    assert buckets.opened(object_key("s3n://other/x")) is not mine
    assert mine.config["region"] == "eu-north-1"


def test_settings_travel_and_open_connections_do_not() -> None:
    buckets = Buckets({"s3.region": "eu-north-1", **KEYS})
    here = buckets.opened(object_key("s3://mine/x"))
    there = pickle.loads(pickle.dumps(buckets)).opened(object_key("s3://mine/x"))
    assert there is not here
    assert there.config["region"] == "eu-north-1"


def test_a_server_that_refuses_connections_is_named_in_plain_words() -> None:
    with socket.socket() as taken:  # bound, so that nobody else has the port, and not listening
        taken.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{taken.getsockname()[1]}"
        settings = {"s3.access-key-id": "a", "s3.secret-access-key": "b", "s3.region": "us-east-1"}
        store = ObjectStores({**settings, "s3.endpoint": endpoint})
        for ask in (lambda: store.get("s3://bucket/key"), lambda: list(store.list("s3://bucket/folder"))):
            with pytest.raises(Unreachable) as refused:
                ask()
            assert str(refused.value) == f"the store at {endpoint} does not answer: nobody accepts connections there"
            assert refused.value.hint == "check the endpoint and the network; then try again"
