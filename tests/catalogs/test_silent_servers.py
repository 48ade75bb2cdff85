"""A server that hangs, at once or after it answered, or takes no connection: an error in time, told while it lasts."""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
import yaml

from firnline import answering
from firnline.catalogs import connections
from firnline.catalogs.rest import settings
from firnline.catalogs.rest.catalog import RestCatalog
from firnline.catalogs.rest.http import Unanswered
from firnline.catalogs.sql import SqlCatalog
from firnline.cli.main import run
from firnline.errors import Unreachable
from firnline.ports.catalogs import SwapOutcome, TableName
from harness.servers import Server
from harness.servers.postgres import execute

FIRNLINE = str(Path(sys.executable).with_name("firnline"))
FROZEN_S = 30.0


@pytest.fixture
def frozen() -> Iterator[str]:
    """The address of a server that accepts connections, by its machine alone, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


@pytest.fixture(autouse=True)
def asked_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "_asked", {})
    monkeypatch.setattr(answering, "_told", {})


@pytest.fixture
def full() -> Iterator[str]:
    """The address of a server whose line of connections is full: packets of more are dropped, as a firewall does."""
    with ExitStack() as kept:
        listening = kept.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):
            waiting = kept.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listening.getsockname())
        yield f"127.0.0.1:{listening.getsockname()[1]}"


@contextmanager
def talking(talk: Callable[[socket.socket], None]) -> Iterator[str]:
    """Yields the address of a server that has this talk with each client, and leaves the connections open."""
    kept = []

    def serve() -> None:
        with suppress(OSError):
            while True:
                kept.append(listening.accept()[0])
                threading.Thread(target=talk, args=(kept[-1],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)
    for each in kept:
        each.close()


def configures(client: socket.socket) -> None:
    """Answers a word and what a catalog's configuration is, and then nothing any more."""
    said = b'{"defaults": {}, "overrides": {}}'
    with suppress(OSError):
        while asked := client.recv(65536):
            if asked.startswith(b"OPTIONS") or b"/v1/config" in asked.splitlines()[0]:
                client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(said), said))


def logs_in(client: socket.socket) -> None:
    """Lets a client of PostgreSQL in without a password, and answers nothing that it asks."""
    with suppress(OSError, struct.error):
        client.recv(8192)
        said = {"server_version": "15.0", "client_encoding": "UTF8", "standard_conforming_strings": "on"}
        words = [f"{name}\0{value}\0".encode() for name, value in said.items()]
        told = b"".join(b"S" + struct.pack("!I", len(each) + 4) + each for each in words)
        client.sendall(b"R" + struct.pack("!II", 8, 0) + told + b"Z" + struct.pack("!I", 5) + b"I")


def settings_of(kind: str, frozen: str) -> dict[str, str]:
    if kind == "rest":
        return {"type": "rest", "uri": f"http://{frozen}"}
    keys = {"s3.access-key-id": "some-id", "s3.secret-access-key": "some-secret", "s3.endpoint": f"http://{frozen}"}
    return {"type": "sql", "uri": "sqlite:///lake.db", "warehouse": "s3://bucket/w", **keys}


@pytest.mark.full
@pytest.mark.parametrize(("kind", "table"), [("rest", "lake.db.t"), ("s3", "s3://bucket/w/db/t")])
def test_a_command_ends_within_half_a_minute(
    kind: str, table: str, frozen: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".pyiceberg.yaml").write_text(yaml.safe_dump({"catalog": {"lake": settings_of(kind, frozen)}}))
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    done = subprocess.run([FIRNLINE, "plan", table], capture_output=True, text=True, check=False, timeout=3 * FROZEN_S)
    assert done.returncode == 1
    assert "waiting for" in done.stderr
    assert f"http://{frozen} does not answer within" in done.stderr
    assert answering.ANSWERS_WITHIN_S < FROZEN_S - 5


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_silence_is_found_and_remembered_for_a_while(
    scheme: str, frozen: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(answering, "ANSWERS_WITHIN_S", 0.6)
    monkeypatch.setattr(answering, "IS_TOLD_AFTER_S", 0.2)
    with pytest.raises(Unreachable, match="the server does not answer"):
        answering.refuse_silent(f"{scheme}://{frozen}", "the server")
    assert "waiting for the server" in caplog.text
    began = time.monotonic()
    with pytest.raises(Unreachable):
        answering.refuse_silent(f"{scheme}://{frozen}", "the server")
    assert time.monotonic() - began < 0.3


def test_a_doctor_waits_no_longer_and_says_so(
    frozen: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(answering, "ANSWERS_WITHIN_S", 0.4)
    monkeypatch.setattr(answering, "IS_TOLD_AFTER_S", 0.1)
    (tmp_path / ".pyiceberg.yaml").write_text(yaml.safe_dump({"catalog": {"lake": settings_of("s3", frozen)}}))
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert run(["doctor", "lake"]) == 1
    assert f"waiting for the store at http://{frozen}, which has not answered yet" in caplog.text
    said = capsys.readouterr().out
    assert f"store of lake  the store at http://{frozen} does not answer within 0.4 s" in said


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:9", "https://127.0.0.1:9", "s3://bucket", "http://", "http://[", "file:///x"]
)
def test_whatever_else_is_wrong_is_left_to_the_client(address: str) -> None:
    answering.refuse_silent(address, "it")


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_server_that_takes_no_connection_is_told_and_named_sooner(
    scheme: str, full: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert answering.CONNECTS_WITHIN_S < 15 - 3
    monkeypatch.setattr(answering, "CONNECTS_WITHIN_S", 0.4)
    monkeypatch.setattr(answering, "IS_TOLD_AFTER_S", 0.1)
    with pytest.raises(Unreachable, match=r"the server takes no connection within 0\.4 s"):
        answering.refuse_silent(f"{scheme}://{full}", "the server")
    assert "waiting for the server" in caplog.text


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Less patience than servers get outside of tests."""
    assert settings._SILENCE_S < FROZEN_S
    assert max(connections._SILENT_S.values()) <= FROZEN_S
    monkeypatch.setattr(settings, "_SILENCE_S", 1.5)
    monkeypatch.setattr(connections, "_SILENT_S", dict.fromkeys(connections._SILENT_S, 1.0))
    monkeypatch.setattr(answering, "IS_TOLD_AFTER_S", 0.3)


@pytest.mark.usefixtures("hasty")
def test_a_rest_catalog_that_hangs_after_it_answered_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    with talking(configures) as address:
        catalog = RestCatalog("lake", {"uri": f"http://{address}"})
        began = time.monotonic()
        with pytest.raises(Unreachable, match=r"no answer within 1\.5 s"):
            list(catalog.tables())
    assert time.monotonic() - began < 2 * 1.5, "it is not asked as long again"
    assert caplog.messages == [f"waiting for catalog lake at http://{address}, which has not answered yet"]
    assert f"http://{address}" not in answering._asked, "the next one of many tables asks for a word first"


@pytest.mark.usefixtures("hasty")
def test_a_rest_catalog_whose_answer_comes_in_drops_is_given_up() -> None:
    """Each drop comes in time, and the whole answer after three hours."""

    def drips(client: socket.socket) -> None:
        with suppress(OSError):
            while asked := client.recv(65536):
                if asked.startswith(b"OPTIONS") or b"/v1/config" in asked.splitlines()[0]:
                    said = b'{"defaults": {}, "overrides": {}}'
                    client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(said), said))
                    continue
                client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
                while True:
                    client.sendall(b" ")
                    time.sleep(0.1)

    with talking(drips) as address:
        began = time.monotonic()
        with pytest.raises(Unreachable, match=r"no answer within 1\.5 s"):
            list(RestCatalog("lake", {"uri": f"http://{address}"}).tables())
    assert time.monotonic() - began < 2 * 1.5


def test_one_connection_carries_many_answers_and_a_cut_one_is_asked_for_again() -> None:
    said = [b'{"overrides": {}}', b'{"namespaces": [["db"]]}', b'{"identifiers": []}', b'{"namespaces": []}']
    clients: list[list[bytes]] = []

    def answers(client: socket.socket) -> None:
        clients.append([])
        with suppress(OSError):
            while asked := client.recv(65536):
                clients[-1].append(asked.splitlines()[0])
                body = b"" if asked.startswith(b"OPTIONS") else said[0]
                cut = len(said) == 3 and len(clients) == 3
                client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body) + cut, body))
                if cut:
                    client.close()
                    return
                if body:
                    said.pop(0)

    with talking(answers) as address:
        assert list(RestCatalog("lake", {"uri": f"http://{address}"}).tables()) == []
    assert [len(each) for each in clients] == [1, 1, 1, 3], "a word; what is configured; the cut answer; all the rest"


@pytest.mark.usefixtures("hasty")
def test_short_answers_are_asked_for_again_while_there_is_time() -> None:
    """Who sets a short `rest.timeout-ms` still gets the tries that a lost packet needs."""
    asked = []

    def second_time(client: socket.socket) -> None:
        if (word := client.recv(65536)).startswith(b"GET"):
            asked.append(word)
        if len(asked) != 1:
            client.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n{"overrides": {}}')

    with talking(second_time) as address:
        assert RestCatalog("lake", {"uri": f"http://{address}", "rest.timeout-ms": "200"}).settings
    assert len(asked) == 2


@pytest.mark.usefixtures("hasty")
def test_a_change_is_neither_sent_again_nor_cut_off_by_the_patience_of_reads() -> None:
    sent = []

    def swallows(client: socket.socket) -> None:
        sent.append(client.recv(65536))
        if sent[-1].startswith(b"OPTIONS"):
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        elif sent[-1].startswith(b"POST"):
            time.sleep(2.0)
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    with talking(swallows) as address:
        catalog = RestCatalog("lake", {"uri": f"http://{address}"})
        vars(catalog)["settings"] = catalog._given
        assert catalog.http.post("/v1/x", {}).is_good, "although reads would have given up"
        short = RestCatalog("lake", {"uri": f"http://{address}", "rest.timeout-ms": "200"})
        vars(short)["settings"] = short._given
        with pytest.raises(Unanswered):
            short.http.post("/v1/x", {})
    assert sum(each.startswith(b"POST") for each in sent) == 2


@pytest.mark.usefixtures("hasty")
def test_a_database_that_hangs_after_the_login_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    with talking(logs_in) as address:
        catalog = SqlCatalog("lake", f"postgresql+psycopg://u:hush@{address}/x?sslmode=disable&gssencmode=disable")
        with pytest.raises(Unreachable, match="no answer within 1 s"):
            list(catalog.tables())
        assert caplog.messages == [
            f"waiting for the database at postgresql+psycopg://u:***@{address}/x, which has not answered yet"
        ]
        began = time.monotonic()
        with pytest.raises(Unreachable, match="no answer within 1 s"):
            list(catalog.tables())
        assert time.monotonic() - began < 0.5, "many tables may lie behind it"
        catalog.close()


@pytest.fixture
def slow_rows(database: Server) -> str:
    """A catalog whose rows come slowly, one after the other."""
    execute(database, "create function slowly(i int) returns int language sql as $$ select i from pg_sleep(0.2) $$")
    execute(
        database,
        "create view iceberg_tables as select 'lake'::text as catalog_name, 'db'::text as table_namespace,"
        " repeat('t', 9000) || slowly(i) as table_name, 's3://b'::text as metadata_location,"
        " null::text as previous_metadata_location from generate_series(1, 10) i",
    )
    return str(database.settings["uri"])


@pytest.mark.usefixtures("hasty")
def test_rows_that_come_slowly_are_waited_for(slow_rows: str) -> None:
    began = time.monotonic()
    catalog = SqlCatalog("lake", slow_rows)
    with catalog._connections.reader().connect() as connection:
        assert len(connection.exec_driver_sql("select * from iceberg_tables").all()) == 10
    catalog.close()
    assert time.monotonic() - began > 1.5, "longer than silence may last"


@pytest.mark.usefixtures("hasty")
def test_a_commit_without_an_answer_leaves_the_outcome_unknown(database: Server) -> None:
    """The database thinks about the COMMIT itself for longer than we wait: nobody can tell, and it lands later."""
    execute(
        database,
        "create table iceberg_tables (catalog_name text, table_namespace text, table_name text,"
        " metadata_location text, previous_metadata_location text)",
    )
    execute(database, "insert into iceberg_tables values ('lake', 'db', 't', 's3://b/1', null)")
    execute(
        database,
        "create function think() returns trigger language plpgsql as $$ begin perform pg_sleep(2); return null; end $$",
    )
    execute(
        database,
        "create constraint trigger late after update on iceberg_tables deferrable initially deferred"
        " for each row execute function think()",
    )
    catalog = SqlCatalog("lake", database.settings["uri"])
    table = TableName("lake", ("db",), "t")
    assert catalog.swap(table, "s3://b/1", "s3://b/2") is SwapOutcome.UNKNOWN
    again = SqlCatalog("lake", database.settings["uri"])
    assert again.locate(table) == "s3://b/1"
    ends = time.monotonic() + 20
    while again.locate(table) != "s3://b/2" and time.monotonic() < ends:
        time.sleep(0.1)
    found = again.locate(table)
    catalog.close()
    again.close()
    assert found == "s3://b/2", "what is unknown may land: it is read back, and fenced off"
