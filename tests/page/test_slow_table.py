"""A table whose store does not answer: a few requests wait for it, others are told to come again, and the rest of the
page is as quick as ever.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import pytest
import requests

from firnline.web.serving.waits import OF_A_TABLE, OF_ALL, Busy, Waits

from .conftest import TABLE, OpenPage

ASKERS, SLOW = 60, "lake.ns.slow"


@contextmanager
def slow_store() -> Iterator[str]:
    """Yields the address of a store that takes every request for an object, and answers none before the end."""
    go = Event()

    class Slow(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            go.wait(60)
            self.send_error(404)

        do_HEAD = do_PUT = do_GET

        def handle(self) -> None:
            with suppress(ConnectionError):  # the client did not wait
                super().handle()

        def log_message(self, *of: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        go.set()
        server.shutdown()
        server.server_close()


def add_slow_table(store: str) -> None:
    """Has the catalog list a table in that store."""
    keys = "    s3.access-key-id: x\n    s3.secret-access-key: x\n    s3.region: us-east-1\n"
    told = Path(".pyiceberg.yaml")
    told.write_text(f"{told.read_text()}    s3.endpoint: {store}\n{keys}")
    row = ("lake", "ns", "slow", "s3://slow/ns/slow/metadata/v1.metadata.json", "TABLE")
    columns = "catalog_name, table_namespace, table_name, metadata_location, iceberg_type"
    with sqlite3.connect("catalog.db") as database:
        database.execute(f"INSERT INTO iceberg_tables ({columns}) VALUES (?, ?, ?, ?, ?)", row)
    database.close()


def test_a_few_wait_for_one_table_and_some_for_all() -> None:
    waits = Waits(2, 3)
    with waits.of("a"), waits.of("a"):
        with pytest.raises(Busy), waits.of("a"):
            pass
        with waits.of("b"), pytest.raises(Busy), waits.of("c"):
            pass
        with waits.of("c"):
            pass
    assert not waits._now
    assert OF_A_TABLE < OF_ALL < 40


@pytest.mark.slow
def test_other_pages_answer_while_a_table_is_slow(page: OpenPage) -> None:
    asked = {
        "/api/table": {"name": SLOW}, "/api/why": {"table": SLOW, "what": "main"}, "/api/plan": {"name": SLOW},
        "/api/run": {"id": f"{SLOW}@20260101T000000Z-abcdef"},
    }  # fmt: skip

    def ask(number: int) -> requests.Response:
        path, words = list(asked.items())[number % len(asked)]
        return requests.get(f"{page.address}{path}", words, timeout=60)

    with ThreadPoolExecutor(ASKERS) as askers, slow_store() as store:
        add_slow_table(store)
        page.index.list_names()
        waiting = [askers.submit(ask, number) for number in range(ASKERS)]
        until = time.monotonic() + 20
        while sum(each.done() for each in waiting) < ASKERS - OF_A_TABLE:
            assert time.monotonic() < until, "all wait"
            time.sleep(0.05)
        refused = [each.result() for each in waiting if each.done()]
        assert len(refused) == ASKERS - OF_A_TABLE, "a few wait for it"
        assert {(each.status_code, each.headers["Retry-After"]) for each in refused} == {(503, "5")}
        act = page.call("/api/do/plan", table=SLOW, by="ann")
        assert (act.status_code, act.headers["Retry-After"]) == (503, "5")
        for path in ("/", "/runs", "/savings", f"/table?name={TABLE}", f"/why?table={TABLE}&what=main"):
            assert page.get(path).status_code == 200, path
        assert sum(each.done() for each in waiting) == len(refused), "the others answered meanwhile"
    assert all(each.result().status_code in (200, 502, 503) for each in waiting)
