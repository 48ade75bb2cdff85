"""Builds the lake under .demo/lake, then runs each command as a person would, from the lake's own folder.

The commands run in this process: libraries load once, which saves the demo most of its time.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from pathlib import Path

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

import firnline
from firnline.cli.main import run
from firnline.testing import lake

LAKE = Path(__file__).resolve().parents[1] / ".demo" / "lake"
REGISTRY, TELEMETRY = "lake.artemis.registry", "lake.artemis.telemetry"


def fresh_lake() -> None:
    shutil.rmtree(LAKE, ignore_errors=True)
    print("Making a lake: three tables, sixty days of commits, tags, a branch, a rollback ...", flush=True)
    begun = time.monotonic()
    lake.build(LAKE, int(time.time() * 1000))
    print(f"Made in {time.monotonic() - begun:.0f} s under {LAKE.relative_to(Path.cwd())}.")


def registry() -> Table:
    catalog = SqlCatalog("lake", uri=f"sqlite:///{LAKE}/catalog.db", warehouse=f"file://{LAKE}/warehouse")
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


def look() -> None:
    """Everything that only looks."""
    snapshot, file = audited(registry())
    show("What is in the lake?", "tables")
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
    fresh_lake()
    os.environ["PYICEBERG_HOME"] = str(LAKE)
    os.chdir(LAKE)
    look()
    act()
    print("\nThe lake stays under .demo/lake; its policy is firnline.yaml there. Change it and plan again.")
    print(f"The demo took {time.monotonic() - begun:.0f} s.")


if __name__ == "__main__":
    main()
