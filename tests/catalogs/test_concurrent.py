"""Eight writers commit to one table while firnline expires its history: no commit, no ref and no file is lost."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import pytest
from pyiceberg.catalog import Catalog as TheirCatalog
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.table import Table

from firnline.app.places import now_ms, places_of
from firnline.errors import RefusedForSafety
from firnline.lake import Lake
from firnline.ops.runs.status import RunStatus
from firnline.policy.parse import Section
from harness.servers import Server

from .lakes import SCHEMA, rows

pytestmark = [pytest.mark.xdist_group("rest"), pytest.mark.filterwarnings("ignore::ResourceWarning")]

WRITERS = 8
BETWEEN_S = 0.5
COMMITS = 500 if os.environ.get("FIRNLINE_FULL") else 36
KEPT = 10


@dataclass
class Crowd:
    """The writers, what each of them committed, and the tags they made."""

    settings: dict[str, str]
    name: str
    numbers: Iterator[int] = field(default_factory=lambda: iter(range(COMMITS)))
    written: list[int] = field(default_factory=list)
    tags: dict[str, int] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def theirs(self) -> TheirCatalog:
        return load_catalog("lake", **self.settings)

    def table(self) -> Table:
        return self.theirs().load_table(self.name)

    def write(self) -> None:
        """Appends row after row; a lost race is run again from a fresh read. Between two commits it has rows to write:
        eight that only commit leave nobody else a turn, and an expiry gives up after its five minutes.
        """
        catalog = self.theirs()
        while (number := self._next()) is not None:
            time.sleep(BETWEEN_S)
            self._until_it_lands(catalog, lambda table, number=number: table.append(rows(number)))
            with self.lock:
                self.written.append(number)
            if number % 10 == 0:
                self._tag(catalog, f"tag-{number}")

    def _tag(self, catalog: TheirCatalog, name: str) -> None:
        """Tags the newest snapshot. One that expired before the tag could be made is no loss."""
        head: list[int] = []

        def tag(table: Table) -> None:
            snapshot = table.current_snapshot()
            assert snapshot is not None
            head[:] = [snapshot.snapshot_id]
            table.manage_snapshots().create_tag(snapshot.snapshot_id, name).commit()

        self._until_it_lands(catalog, tag)
        with self.lock:
            self.tags[name] = head[0]

    def _until_it_lands(self, catalog: TheirCatalog, change: Callable[[Table], None]) -> None:
        for _ in range(500):
            try:
                change(catalog.load_table(self.name))
            except (CommitFailedException, ValidationException):  # its own retry met what had expired meanwhile
                continue
            return
        raise AssertionError("a writer starves")

    def _next(self) -> int | None:
        with self.lock:
            return next(self.numbers, None)


@pytest.fixture(params=["postgres", "rest"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    if request.param == "rest":
        server: Server = request.getfixturevalue("own_rest")
        return dict(server.settings)
    database: Server = request.getfixturevalue("database")
    return {"type": "sql", "uri": database.settings["uri"], "warehouse": f"file://{tmp_path}/warehouse"}


@pytest.fixture
def crowd(settings: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Crowd:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for key, value in settings.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__LAKE__{key.upper()}", value)
    crowd = Crowd(settings, f"crowd_{uuid4().hex[:8]}.t")
    catalog = crowd.theirs()
    catalog.create_namespace(crowd.name.partition(".")[0])
    catalog.create_table(crowd.name, SCHEMA, properties={"write.metadata.previous-versions-max": "1000"})
    return crowd


def expire(crowd: Crowd) -> tuple[int, set[str]]:
    """Returns how many snapshots a run expired, and which refs it found lost on the server."""
    lake = Lake(places_of(Section(), engine="local"))
    try:
        carried = lake.expire(
            f"lake.{crowd.name}", older_than=now_ms() + 1, retain_last=KEPT, grace="0s", blast_radius=1.0
        )
    except RefusedForSafety as refused:
        lost = set(re.findall(r"tag-\d+", refused.message))
        if not lost:
            raise
        return 0, lost
    return len(carried.expired) if isinstance(carried, RunStatus) else 0, set()


@pytest.mark.full
def test_eight_writers_beside_an_expiring_firnline(
    crowd: Crowd, record_property: Callable[[str, object], None]
) -> None:
    expired, runs, noticed = 0, 0, set[str]()
    with ThreadPoolExecutor(WRITERS) as pool:
        writers = [pool.submit(crowd.write) for _ in range(WRITERS)]
        while not all(writer.done() for writer in writers):
            found, lost = expire(crowd)
            expired, runs, noticed = expired + found, runs + bool(found), noticed | lost
        for writer in writers:
            writer.result()
    expired += expire(crowd)[0]

    table = crowd.table()
    assert sorted(crowd.written) == list(range(COMMITS))
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(COMMITS)), "a commit is lost"
    refs = {name: ref.snapshot_id for name, ref in table.metadata.refs.items()}
    gone = {name for name, head in crowd.tags.items() if refs.get(name) != head}
    assert gone <= noticed, "a ref is lost, and nobody noticed"
    assert not gone or crowd.settings["type"] == "rest", "a compare-and-swap lost a ref"
    for snapshot in table.snapshots():
        table.scan(snapshot_id=snapshot.snapshot_id).to_arrow()
    assert Lake(places_of(Section(), engine="local")).check(f"lake.{crowd.name}").presence.faults == 0
    assert expired >= COMMITS - KEPT - len(crowd.tags) - len(table.snapshots())
    assert runs > 0, "nothing expired while the writers wrote"
    kind = crowd.settings["type"]
    record_property("count: commits beside an expiring firnline", {kind: COMMITS, f"{kind}: runs meanwhile": runs})
