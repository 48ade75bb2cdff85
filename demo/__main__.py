"""Builds the lake under .demo/lake, then runs each command as a person would, from the lake's own folder.

`--lake s3` keeps its tables on a throw-away S3 server and its catalog in a throw-away PostgreSQL; `--engine spark`
surveys all of them on Spark. What the lake remembers is asked in Spark SQL at the end, which needs Java.

The commands run in this process: libraries load once, which saves the demo most of its time.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

import firnline
from demo import lake
from demo.proposal import questions
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


@contextmanager
def given_back(folder: Path) -> Iterator[None]:
    """Lets the demo act on a lake, and leaves the lake as it was made: README and guides go on from there."""
    kept = folder.with_name(f"{folder.name}-as-made")
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(folder, kept)
    try:
        yield
    finally:
        os.chdir(folder.parent)
        shutil.rmtree(folder)
        kept.rename(folder)


def loaded(settings: dict[str, str], table: str) -> Table:
    catalog = SqlCatalog("lake", **settings)
    try:
        return catalog.load_table(table.removeprefix("lake."))
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
    print(f"\n# {why}\n$ firnline {' '.join(map(quoted, arguments))}", flush=True)
    code = run(list(arguments))
    sys.stdout.flush()
    if code:
        sys.exit(code)


def quoted(word: str) -> str:
    """Returns a word as a person would type it: SQL, which has quotes of its own, in double ones."""
    return f'"{word}"' if "'" in word else shlex.quote(word)


def newest_run(table: str) -> str:
    return str(firnline.open().runs(table)[-1].run.id)


def look(settings: dict[str, str], engine: str) -> None:
    """Everything that only looks. The survey of the whole lake is what an engine is chosen for: the rest is small."""
    snapshot, file = audited(loaded(settings, REGISTRY))
    show("What is in the lake?", "tables")
    on = ["--engine", "spark"] if engine == "spark" else []
    show("What would a run on all of them free? Worst first, sums below.", "plan", "--all", *on)
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


ASKED = {
    "file added": "When was this file added? Its snapshot is gone; Iceberg's own `snapshots` could not tell.",
    "by application": "By which application?",
    "partition added": "When did this day's partition begin?",
    "partition removed": "Which commit touched it last?",
    "commits": "How many commits had that month?",
    "files": "How many files were added?",
    "records removed": "How many records were removed?",
    "bytes": "How many bytes were added?",
}


def subjects(telemetry: Table) -> dict[str, str]:
    """Returns what the proposal's questions are about here: a month of telemetry, one of its days, a file of that."""
    begun = datetime.fromtimestamp(telemetry.metadata.snapshots[0].timestamp_ms / 1000, UTC).date()
    first, day, last = (begun + timedelta(days=days) for days in (1, 15, 31))
    files = telemetry.inspect.files().select(["file_path", "partition"]).to_pylist()
    file = min(each["file_path"] for each in files if each["partition"]["day"] == day)
    name = TELEMETRY.removeprefix("lake.")
    return {
        "table.snapshots": f"{name}.all_snapshots",
        "table.entries": f"{name}.entries",
        "/my/path.parquet": file,
        "2024-07-15": str(day),
        "2024-07-01": str(first),
        "2024-07-31": str(last),
    }


def ask(settings: dict[str, str]) -> None:
    """Expires telemetry, then asks what it remembers of snapshots that are gone."""
    asked = questions(subjects(loaded(settings, TELEMETRY)))
    remembering = ("--keep-expired-refs", "365d", "--grace", "0s", "--yes")
    show("Expire telemetry, and let it remember for a year what expired.", "expire", TELEMETRY, *remembering)
    if not os.environ.get("JAVA_HOME"):
        print("\nWhat it remembers is asked in Spark SQL, which needs Java 17: `make demo ENGINE=spark` installs it.")
        return
    for name, why in ASKED.items():
        show(why, "sql", " ".join(asked[name].split()))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m demo")
    parser.add_argument("--lake", choices=("local", "s3"), default="local", help="where the tables are")
    parser.add_argument("--engine", choices=("local", "spark"), default="local", help="what surveys all of them")
    return parser.parse_args()


def main() -> None:
    begun, said = time.monotonic(), arguments()
    shutil.rmtree(LAKE, ignore_errors=True)
    shutil.rmtree(SERVERS, ignore_errors=True)
    with places(said.lake) as settings:
        fresh_lake(settings)
        # A session of one command would be at hand for all that follow, and `auto` would use it.
        os.environ |= {"PYICEBERG_HOME": str(LAKE), "FIRNLINE_ENGINE": "local"}
        os.chdir(LAKE)
        with given_back(LAKE):
            look(settings, said.engine)
            act()
            ask(settings)
    if said.lake == "local":
        print("\nUnder .demo/lake is the lake as it was made, for you to go on; its policy is firnline.yaml there.")
    print(f"The demo took {time.monotonic() - begun:.0f} s.")


if __name__ == "__main__":
    main()
