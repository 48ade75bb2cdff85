"""Builds the lake under .demo/lake, then runs each command as a person would, from the lake's own folder.

`python -m demo s3` keeps its tables on a throw-away S3 server and its catalog in a throw-away PostgreSQL.

The commands run in this process: libraries load once, which saves the demo most of its time.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

import firnline
from demo import lake
from firnline.cli.main import run
from harness import servers
from harness.servers.s3 import make_bucket
from harness.servers.versitygw import is_built

LAKE = Path(__file__).resolve().parents[1] / ".demo" / "lake"
SERVERS = LAKE.parent / "servers"
REGISTRY, TELEMETRY = "lake.artemis.registry", "lake.artemis.telemetry"


@contextmanager
def places(where: str) -> Iterator[dict[str, str]]:
    """The settings of the lake's catalog. Servers end with the demo."""
    if where == "local":
        yield lake.local_catalog(LAKE)
        return
    with ExitStack() as stack:
        s3 = stack.enter_context(s3_server(SERVERS))
        try:
            uri = stack.enter_context(servers.postgres(SERVERS)).url
        except servers.Missing as missing:
            print(f"{missing}: the catalog is a SQLite file instead.")
            uri = lake.local_catalog(LAKE)["uri"]
        warehouse = make_bucket(s3, "demo")
        print(f"Tables are objects in {warehouse} at {s3.url} ({s3.name}); the catalog is {uri}.")
        yield {"type": "sql", "uri": uri, "warehouse": warehouse, **s3.settings}


def s3_server(folder: Path) -> AbstractContextManager[servers.Server]:
    """The quicker one where it is built already."""
    return servers.versitygw(folder) if is_built() else servers.moto(folder)


def fresh_lake(settings: dict[str, str]) -> None:
    print("Making a lake: three tables, sixty days of commits, tags, a branch, a rollback ...", flush=True)
    begun, now_ms = time.monotonic(), int(time.time() * 1000)
    if settings["warehouse"].startswith("file:"):
        lake.build(LAKE, now_ms)
    else:
        lake.build_on(settings, LAKE, now_ms)
    print(f"Made in {time.monotonic() - begun:.0f} s; its settings are under {LAKE.relative_to(Path.cwd())}.")


def registry(settings: dict[str, str]) -> Table:
    catalog = SqlCatalog("lake", **settings)
    try:
        return catalog.load_table("artemis.registry")
    finally:
        catalog.close()


def audited(table: Table) -> tuple[int, str]:
    """The snapshot that the older audit tag names, and a data file that only history needs."""
    oldest = min(name for name in table.metadata.refs if name.startswith("audit-"))
    snapshot = table.metadata.refs[oldest].snapshot_id
    today = {task.file.file_path for task in table.scan().plan_files()}
    needed = {task.file.file_path for task in table.scan(snapshot_id=snapshot).plan_files()}
    return snapshot, min(needed - today)


def show(why: str, *arguments: str) -> None:
    """Says what comes, echoes the command, runs it. Stops the demo where the command fails."""
    print(f"\n# {why}\n$ firnline {shlex.join(arguments)}", flush=True)
    code = run(list(arguments))
    sys.stdout.flush()
    if code:
        sys.exit(code)


def newest_run(table: str) -> str:
    return str(firnline.open().runs(table)[-1].run.id)


def look(settings: dict[str, str]) -> None:
    """Everything that only looks."""
    snapshot, file = audited(registry(settings))
    show("What is in the lake?", "tables")
    show("What would a run on all of them free? Worst first, sums below.", "plan", "--all")
    show("What would a run on the registry free, and what stays? Nothing is changed.", "plan", REGISTRY)
    show("The same for telemetry: another window, a branch, a commit rolled back.", "plan", TELEMETRY)
    show("Why does this old snapshot stay?", "why", REGISTRY, str(snapshot))
    show("And who still needs this file, which today's table does not?", "why", REGISTRY, file)
    show("Where does each value of the policy come from?", "policy", "show", REGISTRY)


def act() -> None:
    """Everything that changes the table: there and back, then for good."""
    show("Expire. The snapshots leave the table now, their files stay for a day of grace.", "expire", REGISTRY, "--yes")
    show("Is every file there that the smaller table needs?", "check", REGISTRY)
    show("Until the purge starts, everything can come back.", "undo", newest_run(REGISTRY))
    show("All snapshots are here again, and so is every file.", "check", REGISTRY)
    show("Now without grace: commit, then delete what was written down.", "expire", REGISTRY, "--grace", "0s", "--yes")
    show("What stays is whole.", "check", REGISTRY)
    show("Each run left its record.", "runs")


def main() -> None:
    begun = time.monotonic()
    where = sys.argv[1] if len(sys.argv) > 1 else "local"
    if where not in ("local", "s3"):
        sys.exit(f"no demo on {where!r}: there are local and s3 (make demo LAKE=s3)")
    shutil.rmtree(LAKE, ignore_errors=True)
    shutil.rmtree(SERVERS, ignore_errors=True)
    with places(where) as settings:
        fresh_lake(settings)
        os.environ["PYICEBERG_HOME"] = str(LAKE)
        os.chdir(LAKE)
        look(settings)
        act()
    if where == "local":
        print("\nThe lake stays under .demo/lake; its policy is firnline.yaml there. Change it and plan again.")
    print(f"The demo took {time.monotonic() - begun:.0f} s.")


if __name__ == "__main__":
    main()
