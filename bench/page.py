"""Pages under load: a lake of 5,000 real tables of which one has 2,000 snapshots, asked by several clients at once.

All tables are written by the harness's generator and listed by a real SQLite catalog; the page looks at each of them
before it is asked; of one in ten something would go. Exits 1 if a page takes more than 300 ms at p95.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import tempfile
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import requests
import uvicorn
from parts.measuring import machine
from parts.reporting import FOLDER
from pyiceberg.catalog.sql import SqlCatalog

from firnline.lake import open_lake
from firnline.web.serving.gate import Gate
from firnline.web.serving.index import LakeIndex
from firnline.web.serving.site import site_of
from harness.large.tables import LargeShape, LargeTable

TABLES, SNAPSHOTS, CLIENTS, REQUESTS, CEILING_S = 5_000, 2_000, 2, 200, 0.3
SMALL = LargeShape(5, 2, live=3, refs=2, columns=4, partitions=1)
NAME = "lake.ns.large"
PAGES = {
    "tables": "/",
    "tables, page 40": "/?page=40&sort=name",
    "search": "/?q=table-04",
    "table of 2,000 snapshots": f"/table?name={NAME}",
    "runs": "/runs",
    "savings": "/savings",
    "why a snapshot": f"/why?table={NAME}&what=main",
    "API: tables": "/api/tables",
    "API: graph": f"/api/graph?name={NAME}",
}
POLICY = """keep: {daily: 30}
catalogs:
  lake:
    namespaces:
      ns:
        tables:
          "table-*[123456789]": {keep: {last: 100}}
"""
"""Of ten small tables one has something that would go."""
PYICEBERG = "catalog:\n  lake:\n    type: sql\n    uri: sqlite:///{folder}/catalog.db\n    warehouse: file://{folder}\n"


def lake_in(folder: Path) -> None:
    """Makes a lake with the large table and many small ones."""
    os.environ.update(
        PYICEBERG_HOME=str(folder), XDG_CACHE_HOME=str(folder / "cache"), XDG_CONFIG_HOME=str(folder / "c")
    )
    os.chdir(folder)
    (folder / ".pyiceberg.yaml").write_text(PYICEBERG.format(folder=folder))
    (folder / "firnline.yaml").write_text(POLICY)
    SqlCatalog("lake", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}").close()
    LargeTable(folder / "large", LargeShape(SNAPSHOTS, 4, live=40, cadence=9, refs=20)).write()
    names = ["large", *(f"table-{each:04d}" for each in range(1, TABLES))]
    with ProcessPoolExecutor(os.cpu_count()) as writers:
        list(writers.map(_write_small, [folder / name for name in names[1:]], chunksize=50))
    rows = [("lake", "ns", name, f"file://{folder}/{name}/metadata/v1.metadata.json", "TABLE") for name in names]
    columns = "catalog_name, table_namespace, table_name, metadata_location, iceberg_type"
    with sqlite3.connect(folder / "catalog.db") as database:
        database.executemany(f"INSERT INTO iceberg_tables ({columns}) VALUES (?, ?, ?, ?, ?)", rows)
    database.close()


def _write_small(folder: Path) -> None:
    LargeTable(folder, SMALL).write(alone=True)


def served() -> tuple[str, uvicorn.Server]:
    """Returns the address of the page, and what stops it."""
    index = LakeIndex(lambda: open_lake(engine="local"))
    index.look()
    assert len(index.rows) == TABLES
    assert not any(row.error for row in index.rows.values())
    app = site_of(lambda: open_lake(engine="local"), index, Gate(None, is_open=True))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="off"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.01)
    return f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}", server


def p95(address: str) -> tuple[float, float]:
    """Returns the time of the first request, and the 95th of 100 of many, by several clients at once."""

    def ask(_: int) -> float:
        start = time.perf_counter()
        answer = requests.get(address, timeout=60)
        took = time.perf_counter() - start
        assert answer.status_code == 200, answer.text
        return took

    first = ask(0)
    with ThreadPoolExecutor(CLIENTS) as clients:
        times = sorted(clients.map(ask, range(REQUESTS)))
    return round(first, 3), round(times[int(len(times) * 0.95)], 3)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        lake_in(Path(folder).resolve())
        built = time.perf_counter()
        address, server = served()
        looked = time.perf_counter()
        found = {name: p95(f"{address}{path}") for name, path in PAGES.items()}
        server.should_exit = server.force_exit = True
        os.chdir("/")
    print(f"{TABLES:,} tables: written in {built - started:.0f} s, looked at in {looked - built:.0f} s")
    for name, (first, later) in found.items():
        print(f"{name}: first {first * 1000:.0f} ms, p95 {later * 1000:.0f} ms")
    pages = {name: {"first_s": first, "p95_s": later} for name, (first, later) in found.items()}
    answer = {"clients": CLIENTS, "tables": TABLES, "snapshots": SNAPSHOTS, "ceiling_s": CEILING_S,
              "look_s": round(looked - built, 1), "pages": pages}  # fmt: skip
    (FOLDER / "page.json").write_text(json.dumps({**answer, "machine": machine()}, indent=1) + "\n")
    return 0 if all(later <= CEILING_S for _, later in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
