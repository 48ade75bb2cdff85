"""Taking metadata out of a table's folder: only the object that was meant goes."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Barrier, Thread

import pytest

from firnline.errors import ObjectChanged, StoreError
from firnline.ports.stores import TaggedObject
from firnline.stores.objects import ObjectStores
from firnline.stores.removers import ObjectRetire
from harness.lanes import by_lane
from harness.servers.fixtures import Bucket, unique
from harness.servers.process import Server
from harness.servers.s3 import make_bucket

from .careless import careless


class Overtaken(ObjectStores):
    """Somebody rolls back and commits again just after an object was read: another one has its name."""

    def get(self, key: str) -> bytes:
        data = super().get(key)
        self.put(key, b"another")
        return data


@pytest.fixture(params=["local", "moto"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[dict[str, str], str]:
    if request.param == "local":
        return {}, f"file://{tmp_path}/snapshot-7"
    bucket: Bucket = request.getfixturevalue("moto_bucket")
    return dict(bucket.server.settings), f"{bucket.uri}/t/snapshot/snapshot-7"


def test_what_was_written_under_the_same_name_meanwhile_stays(place: tuple[dict[str, str], str]) -> None:
    settings, key = place
    store = Overtaken(settings)
    store.put(key, b"meant")
    ObjectRetire(store, settings).retire(key, b"meant")
    assert ObjectStores(settings).get(key) == b"another"


def test_what_is_meant_goes_and_what_differs_or_is_gone_is_left_alone(place: tuple[dict[str, str], str]) -> None:
    settings, key = place
    store = ObjectStores(settings)
    retirer = ObjectRetire(store, settings)
    retirer.retire(key, b"meant")
    store.put(key, b"meant")
    retirer.retire(key, b"other")
    assert store.get(key) == b"meant"
    retirer.retire(key, b"meant")
    assert not list(store.list(key.rpartition("/")[0]))


Place = tuple[dict[str, str], str]
ROUNDS = by_lane(unit=60, test=60, full=2_000)


@pytest.fixture(params=["local", "moto_server", "versitygw_server"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "local":
        return {}, f"file://{tmp_path}/t/x.ver"
    server: Server = request.getfixturevalue(request.param)
    return dict(server.settings), f"{make_bucket(server, unique('retire'))}/t/x.ver"


def test_only_what_is_as_it_was_read_is_removed(shared: Place) -> None:
    settings, key = shared
    store, retirer = ObjectStores(settings), ObjectRetire(ObjectStores(settings), settings)
    store.put(key, b"old")
    seen = store.get_tagged(key)
    assert retirer.retires_as_read(key.rpartition("/")[0])
    store.put_if_match(key, b"new", seen)
    assert not retirer.retire_as_read(key, seen)
    assert store.get(key) == b"new"
    assert retirer.retire_as_read(key, store.get_tagged(key))
    assert not list(store.list(key.rpartition("/")[0])), "nothing is left of the question, either"
    retirer.retire_as_read(key, seen)


# On S3 it is the server's word that comparing and removing are one step: moto and versitygw lose a race now and then.
@pytest.mark.parametrize("shared", ["local"], indirect=True)
def test_a_removal_never_takes_what_replaced_the_object_that_was_read(shared: Place) -> None:
    settings, key = shared
    store, retirer = ObjectStores(settings), ObjectRetire(ObjectStores(settings), settings)
    assert retirer.retires_as_read(key.rpartition("/")[0])
    start = Barrier(2)

    def race(act: Callable[[TaggedObject], bool], seen: TaggedObject) -> bool:
        start.wait()
        return act(seen)

    with ThreadPoolExecutor(2) as racers:
        for turn in range(ROUNDS):
            store.put(key, b"old %d" % turn)
            seen = store.get_tagged(key)
            removing = racers.submit(race, partial(retirer.retire_as_read, key), seen)
            replacing = racers.submit(race, partial(replaced, store, key), seen)
            assert removing.result() or replacing.result()
            assert bool(list(store.list(key.rpartition("/")[0]))) == replacing.result()


def replaced(store: ObjectStores, key: str, seen: TaggedObject) -> bool:
    try:
        store.put_if_match(key, seen.data + b", replaced", seen)
    except ObjectChanged:
        return False
    return True


def test_a_publisher_that_replaces_a_file_is_waited_for(tmp_path: Path) -> None:
    """On local files no call compares and unlinks in one step: a file that is replaced in between would be gone."""
    file, store = tmp_path / "x.ver", ObjectStores()
    file.write_bytes(b"old")
    seen, told = store.get_tagged(str(file)), list[bool]()
    publisher = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(publisher, fcntl.LOCK_EX)
    remover = Thread(target=lambda: told.append(ObjectRetire(store).retire_as_read(str(file), seen)))
    remover.start()
    remover.join(0.5)
    (tmp_path / "next").write_bytes(b"new")
    (tmp_path / "next").rename(file)
    os.close(publisher)
    remover.join()
    assert (told, file.read_bytes()) == ([False], b"new")


def test_a_name_that_is_used_again_while_the_delete_is_on_its_way_stays(moto_server: Server) -> None:
    key = f"{make_bucket(moto_server, unique('retire'))}/t/x.ver"
    store = ObjectStores(moto_server.settings)
    store.put(key, b"old")
    with careless(moto_server.url) as server:

        def use_again(method: str, path: str) -> None:
            if method == "DELETE" and path.partition("?")[0].endswith("/t/x.ver"):
                store.put(key, b"new")

        server.before = use_again
        settings = {**moto_server.settings, "s3.endpoint": server.url}
        retirer = ObjectRetire(store, settings)
        assert retirer.retires_as_read(key.rpartition("/")[0])
        assert not retirer.retire_as_read(key, store.get_tagged(key))
    assert store.get(key) == b"new"


def test_a_store_that_ignores_the_condition_is_not_asked(moto_server: Server) -> None:
    key = f"{make_bucket(moto_server, unique('retire'))}/t/x.ver"
    store = ObjectStores(moto_server.settings)
    store.put(key, b"old")
    with careless(moto_server.url) as server:
        server.forgets = ("if-match",)
        retirer = ObjectRetire(store, {**moto_server.settings, "s3.endpoint": server.url})
        assert not retirer.retires_as_read(key.rpartition("/")[0])
        with pytest.raises(StoreError, match="not only as it was read"):
            retirer.retire_as_read(key, store.get_tagged(key))
    assert store.get(key) == b"old"
