"""Messages of a catalog: they name tables, and what the catalog says is published."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from select import select
from threading import Thread
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from firnline.app.pointers.listener import LARGEST_MESSAGE, MOST_CLIENTS, listener
from firnline.app.pointers.verbs import SyncedTable
from firnline.errors import UsageError
from tests.neighbours.lakes import RealLake, real_lake

TOKEN = "not to be guessed"


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RealLake]:
    with real_lake(tmp_path, monkeypatch) as found:
        found.policy = "pointers: identifier"
        yield found


@pytest.fixture
def told() -> list[SyncedTable]:
    return []


@pytest.fixture
def at(lake: RealLake, told: list[SyncedTable]) -> Iterator[str]:
    server = listener(lake.firnline().pointers, "127.0.0.1", 0, TOKEN, told.append)
    thread = Thread(target=server.serve_forever, args=[0.02])
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()
    thread.join()


def post(at: str, message: bytes, token: str = TOKEN) -> tuple[int, Any]:
    asked = Request(at, message, {"Authorization": f"Bearer {token}"}, method="POST")
    try:
        with urlopen(asked) as answer:
            return answer.status, json.load(answer)
    except HTTPError as refused:
        return refused.code, json.load(refused)


def test_a_message_brings_the_pointer_to_the_truth(lake: RealLake, at: str, told: list[SyncedTable]) -> None:
    lake.create("t")
    for number in range(3):
        lake.append("t", number)
        status, said = post(at, json.dumps({"table": "lake.db.t", "metadata": "file:///etc/passwd"}).encode())
        assert (status, len(said["tables"][0]["pointers"])) == (200, 1)
        found = lake.firnline().pointers.open_path(lake.table("t").location())
        assert found.metadata == lake.table("t").metadata_location, "what a message says is not believed"
    assert [each.table for each in told] == ["lake.db.t"] * 3


@pytest.mark.parametrize(
    ("message", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[" * 60_000, 400),
        (b"[]", 400),
        (b"{}", 400),
        (b'{"table": 7}', 400),
        (b'{"tables": []}', 400),
        (json.dumps({"tables": [f"lake.db.t{number}" for number in range(101)]}).encode(), 400),
        (b'{"table": "lake.db.nobody"}', 404),
        (b'{"table": "nowhere.db.t"}', 404),
        (b'{"table": "lake.db.\\ud800"}', 400),
        (b'{"table": "/etc/passwd"}', 404),
        (b'{"table": "s3://any/bucket"}', 404),
        (b" " * (LARGEST_MESSAGE + 1), 413),
    ],
)
def test_garbage_gets_an_answer(lake: RealLake, at: str, message: bytes, status: int) -> None:
    lake.create("t")
    assert post(at, message)[0] == status
    assert post(at, b'{"table": "lake.db.t"}')[0] == 200


def test_a_length_of_thousands_of_digits_gets_an_answer(lake: RealLake, at: str) -> None:
    asked = Request(at, b"{}", {"Authorization": f"Bearer {TOKEN}", "Content-Length": "9" * 5_000}, method="POST")
    with pytest.raises(HTTPError, match="413"):
        urlopen(asked)


def test_a_place_is_no_table_that_a_message_may_name(lake: RealLake, at: str) -> None:
    lake.create("t")
    place = lake.table("t").location()
    status, said = post(at, json.dumps({"tables": [place, "lake.db.t"]}).encode())
    assert (status, said["tables"][0]["error"]["kind"]) == (404, "usage")
    assert len(said["tables"][1]["pointers"]) == 1


def test_one_bad_table_does_not_stop_the_others(lake: RealLake, at: str) -> None:
    lake.create("t")
    status, said = post(at, b'{"tables": ["lake.db.nobody", "lake.db.t"]}')
    assert status == 404
    assert [("error" in each, len(each["pointers"])) for each in said["tables"]] == [(True, 0), (False, 1)]


def test_nothing_goes_without_the_token(lake: RealLake, at: str) -> None:
    lake.create("t")
    for wrong in ("", "x", TOKEN + "x", "ä"):
        assert post(at, b'{"table": "lake.db.t"}', wrong.encode("utf-8").decode("latin-1"))[0] == 401
    assert not list(Path(lake.table("t").location().removeprefix("file://")).rglob("*.ver"))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org"])
def test_no_open_door_without_a_token(lake: RealLake, host: str) -> None:
    for token in (None, ""):
        with pytest.raises(UsageError, match="no token"):
            listener(lake.firnline().pointers, host, 0, token, print)


def test_clients_that_say_nothing_are_as_many_as_there_are_places(lake: RealLake, at: str) -> None:
    lake.create("t")
    host, port = at.removeprefix("http://").rstrip("/").split(":")
    silent = [socket.create_connection((host, int(port))) for _ in range(MOST_CLIENTS + 5)]
    try:
        assert eventually(lambda: len(_shut(silent)) == 5)
    finally:
        for each in silent:
            each.close()
    assert eventually(lambda: post(at, b'{"table": "lake.db.t"}')[0] == 200)


def _shut(clients: list[socket.socket]) -> list[socket.socket]:
    """Returns those that have something to read: the server says nothing before it is asked, so that is the end."""
    return select(clients, [], [], 0)[0]


def eventually(holds: Callable[[], bool]) -> bool:
    """Returns whether it holds within some seconds: a place is free again when its thread has noticed."""
    for _ in range(50):
        with suppress(OSError):
            if holds():
                return True
        time.sleep(0.1)
    return False


def test_a_client_that_drips_is_not_waited_for(lake: RealLake, at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("firnline.app.pointers.listener._SLOWEST_S", 1)
    host, port = at.removeprefix("http://").rstrip("/").split(":")
    with socket.create_connection((host, int(port))) as client:
        client.sendall(f"POST / HTTP/1.0\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 999\r\n\r\n".encode())
        for _ in range(8):
            with suppress(OSError):
                client.sendall(b" ")
            time.sleep(0.25)
        client.settimeout(5)
        assert b"408" in client.recv(100)
