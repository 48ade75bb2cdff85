"""Watching the pointers of 10,000 tables in one SQL catalog, next to a program that asks PyIceberg for each of them.

.venv/bin/python bench/pointers.py [--short]

A SQLite catalog with 10,000 tables, whose pointers were published by a first look. Then nothing changes, and one look
of `firnline pointers watch` is measured, best of five, with the queries that it sends; and a look after 10 tables moved
on. Against it: PyIceberg's catalog asked for the metadata location of 500 of these tables, as a watcher without a
listing of locations does, times twenty.

Exits 1 where an idle look sends more than one query, where a look publishes other tables than those that moved, or
where the ratio is below its floor. `--short` has 1,000 tables; its ratio is shown and not judged.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import sqlalchemy as sa
import yaml
from parts.measuring import machine
from parts.reporting import Line, save, table
from pyiceberg.catalog.sql import SqlCatalog

from firnline.lake import open_lake

FLOOR = 50.0
SAMPLE = 500
ROUNDS = 5
MOVED = 10


def build(folder: Path, tables: int) -> SqlCatalog:
    """Returns a catalog whose tables all are copies of one, each with metadata and a uuid of its own."""
    settings = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/warehouse"}
    (folder / ".pyiceberg.yaml").write_text(yaml.safe_dump({"catalog": {"lake": settings}}))
    (folder / "firnline.yaml").write_text("pointers: identifier\n")
    catalog = SqlCatalog("lake", **settings)
    catalog.create_namespace("db")
    first = catalog.create_table("db.t00000", pa.schema([("x", pa.int64())]))
    document = json.loads(Path(first.metadata_location.removeprefix("file://")).read_text())
    rows = [copied(folder, document, number) for number in range(1, tables)]
    with catalog.engine.begin() as connection:
        connection.execute(
            sa.text(
                "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location)"
                " VALUES ('lake', 'db', :name, :place)"
            ),
            rows,
        )
    return catalog


def copied(folder: Path, document: dict[str, Any], number: int) -> dict[str, str]:
    name = f"t{number:05d}"
    home = folder / "warehouse" / "db" / name / "metadata"
    home.mkdir(parents=True)
    place = home / f"00000-{uuid4()}.metadata.json"
    place.write_text(json.dumps({**document, "table-uuid": str(uuid4()), "location": f"file://{home.parent}"}))
    return {"name": name, "place": f"file://{place}"}


class Queries:
    """Counts what is sent to the database; SQLite's own settings are none."""

    def __init__(self) -> None:
        self.sent = 0

    def __enter__(self) -> Queries:
        sa.event.listen(sa.Engine, "before_cursor_execute", self._note)
        return self

    def __exit__(self, *_: object) -> None:
        sa.event.remove(sa.Engine, "before_cursor_execute", self._note)

    def _note(self, connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        self.sent += not statement.startswith("PRAGMA")


def timed(look: Any) -> tuple[float, list[Any]]:
    begun = time.perf_counter()
    found = list(look())
    return time.perf_counter() - begun, found


def asked_one_by_one(catalog: SqlCatalog, tables: int) -> float:
    """Returns the seconds that it takes to ask for every table's metadata location, reckoned from a sample."""
    sample = [("db", f"t{number:05d}") for number in range(0, tables, max(1, tables // SAMPLE))]
    begun = time.perf_counter()
    for each in sample:
        _ = catalog.load_table(each).metadata_location
    return (time.perf_counter() - begun) / len(sample) * tables


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="a tenth of the tables; saves nothing")
    short = parser.parse_args().short
    tables, before = 1_000 if short else 10_000, machine()
    with tempfile.TemporaryDirectory(prefix="firnline-pointers-") as place:
        folder = Path(place)
        os.environ["PYICEBERG_HOME"] = place
        os.environ["FIRNLINE_CACHE"] = str(folder / "cache")
        catalog = build(folder, tables)
        watching = open_lake(str(folder / "firnline.yaml")).pointers.watch()
        first_s, published = timed(watching.look)
        with Queries() as queries:
            looks = [timed(watching.look) for _ in range(ROUNDS)]
        for number in range(MOVED):
            catalog.load_table(("db", f"t{number:05d}")).append(pa.table({"x": pa.array([1], pa.int64())}))
        moved_s, moved = timed(watching.look)
        theirs_s = asked_one_by_one(catalog, tables)
        catalog.close()
    idle_s, per_look = min(seconds for seconds, _ in looks), queries.sent / ROUNDS
    right = len(published) == tables and not any(found for _, found in looks) and len(moved) == MOVED
    print(f"{tables:,} tables: first look {first_s:.1f} s, idle look {idle_s * 1000:.0f} ms with {per_look:g} queries")
    print(f"a look after {MOVED} tables moved on: {moved_s * 1000:.0f} ms, {len(moved)} published")
    lines = [Line(f"a look at {tables:,} tables", idle_s, theirs_s, FLOOR)]
    print(table(lines))
    if not short:
        figures = {"first_s": first_s, "idle_s": idle_s, "moved_s": moved_s, "queries": per_look}
        save("pointers", lines, {"machine": before, "tables": tables, **figures})
    return 0 if right and per_look == 1 and (short or all(line.holds for line in lines)) else 1


if __name__ == "__main__":
    sys.exit(main())
