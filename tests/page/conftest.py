"""A page on a real lake in a folder: one small table, whose tag is named as an attacker would name it."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import requests
import uvicorn
from pyiceberg.catalog.sql import SqlCatalog

from firnline.cli.main import run
from firnline.lake import open_lake
from firnline.testing.manifests import AvroLayout
from firnline.testing.tables import QuickFiles, SmallTable
from firnline.web.serving.gate import Gate
from firnline.web.serving.guesses import Guesses
from firnline.web.serving.index import LakeIndex
from firnline.web.serving.site import site_of

TOKEN = "correct-horse-battery-staple"
TABLE = "lake.ns.events"
EVIL = '<script>alert("1")</script>'
PYICEBERG = "catalog:\n  lake:\n    type: sql\n    uri: sqlite:///{folder}/catalog.db\n    warehouse: file://{folder}\n"


@dataclass
class OpenPage:
    """A page that is served, and a browser's memory of it without a browser."""

    address: str
    index: LakeIndex
    gate: Gate
    browser: requests.Session = field(default_factory=requests.Session)
    table: SmallTable | None = None

    def get(self, path: str, **more: Any) -> requests.Response:
        return self.browser.get(f"{self.address}{path}", timeout=30, **more)

    def post(self, path: str, data: Any = None, **more: Any) -> requests.Response:
        return self.browser.post(f"{self.address}{path}", data, timeout=60, **more)

    def call(self, path: str, token: str | None = TOKEN, **said: Any) -> requests.Response:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return requests.post(f"{self.address}{path}", json=said, headers=headers, timeout=60)

    def facts(self, path: str, **asked: str) -> Any:
        answer = requests.get(f"{self.address}{path}", params=asked, timeout=30)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def log_in(self, who: str = "Ann Auditor") -> str:
        """Returns the word that this session's forms have."""
        answer = self.post("/login", {"who": who, "token": TOKEN, "next": "/"})
        assert answer.status_code == 200, answer.text
        (session,) = self.gate.sessions._open.values()
        return session.csrf


@contextmanager
def served(gate: Gate, config: str | None = None) -> Iterator[OpenPage]:
    """Serves a page on a free port of this machine, with all tables looked at."""
    index = LakeIndex(lambda: open_lake(config, engine="local"), config)
    index.look()
    app = site_of(lambda: open_lake(config, engine="local"), index, gate)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield OpenPage(f"http://127.0.0.1:{port}", index, gate)
    finally:
        server.should_exit = server.force_exit = True
        thread.join(10)


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallTable:
    """The table of a lake that a test may change."""
    return table_in(tmp_path / "lake", monkeypatch)


@pytest.fixture
def still(still_for_all: OpenPage) -> OpenPage:
    """A page for tests that change nothing; the wrong tokens of the test before are forgotten."""
    still_for_all.gate.guesses = Guesses()
    return still_for_all


@pytest.fixture(scope="module")
def still_for_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenPage]:
    """One page for all of them."""
    with pytest.MonkeyPatch.context() as patch:
        made = table_in(tmp_path_factory.mktemp("still") / "lake", patch)
        with served(Gate(TOKEN, is_open=True)) as found:
            found.table = made
            yield found


def table_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> SmallTable:
    """Returns a table of seven commits with a tag, and much that its own retention lets go."""
    folder.mkdir()
    (folder / ".pyiceberg.yaml").write_text(PYICEBERG.format(folder=folder))
    (folder / "firnline.yaml").write_text(f"audit: {folder}/log\nblast-radius: 100%\n")
    monkeypatch.setenv("PYICEBERG_HOME", str(folder))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "no-config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "no-cache"))
    monkeypatch.chdir(folder)
    SqlCatalog("lake", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}").close()
    made = SmallTable(QuickFiles(), f"file://{folder}/ns/events", AvroLayout(2))
    made.append(2)
    tagged = made.append(1)
    made.append(1)
    made.overwrite(made.live()[:2])
    for _ in range(3):
        made.append(1)
    made.tag(EVIL, tagged)
    row = ("lake", "ns", "events", made.publish(), "TABLE")
    columns = "catalog_name, table_namespace, table_name, metadata_location, iceberg_type"
    with sqlite3.connect(folder / "catalog.db") as database:
        database.execute(f"INSERT INTO iceberg_tables ({columns}) VALUES (?, ?, ?, ?, ?)", row)
    database.close()
    return made


@pytest.fixture
def page(table: SmallTable) -> Iterator[OpenPage]:
    with served(Gate(TOKEN, is_open=True)) as found:
        yield found


def said(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    """Returns what a command prints as JSON."""
    capsys.readouterr()
    assert run([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)
