"""Builds the lake under .demo/lake, then runs each command as a person would, from the lake's own folder."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from firnline.testing import lake

LAKE = Path(__file__).resolve().parents[1] / ".demo" / "lake"
FIRNLINE = Path(sys.executable).with_name("firnline")
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
    environment = {**os.environ, "PYICEBERG_HOME": str(LAKE)}
    ended = subprocess.run([FIRNLINE, *arguments], cwd=LAKE, env=environment, check=False)
    if ended.returncode:
        sys.exit(ended.returncode)


def main() -> None:
    fresh_lake()
    snapshot, file = audited(registry())
    show("What is in the lake?", "tables")
    show("What would a run on the registry free, and what stays? Nothing is changed.", "plan", REGISTRY)
    show("The same for telemetry: another window, a branch, a commit rolled back.", "plan", TELEMETRY)
    show("Why does this old snapshot stay?", "why", REGISTRY, str(snapshot))
    show("And who still needs this file, which today's table does not?", "why", REGISTRY, file)
    show("Where does each value of the policy come from?", "policy", "show", REGISTRY)
    print("\nThe lake stays under .demo/lake; its policy is firnline.yaml there. Change it and plan again.")


if __name__ == "__main__":
    main()
