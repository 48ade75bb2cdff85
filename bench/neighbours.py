"""What it costs to ask a lake of a thousand tables before a plan: once all of them are known, and the first time.

.venv/bin/python bench/neighbours.py [tables]

One SQL catalog; the planned table has 150 snapshots and 1,000 files, every other table five snapshots, and one of them
took in a file of the planned one. Each round is `firnline plan` as a process of its own: what is known of the lake
comes from the cache on disk. Exits 1 if a plan that asks takes more than 1.5 times the time of one that does not. The
same inside of one process, without its start, is shown beside it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import yaml

from firnline.app.places import now_ms
from firnline.lake import open_lake
from firnline.model.times import DAY_MS
from firnline.plans.plan import Plan
from harness.crowds import Crowd
from harness.pointers import CATALOG

AT_MOST = 1.5
ROUNDS = 9
SNAPSHOTS, FILES_EACH = 100, 10


def build(folder: Path, tables: int) -> Crowd:
    crowd = Crowd.make(folder)
    planned = crowd.table("planned", commits=0)
    for day in range(SNAPSHOTS):
        crowd.clock.ahead_ms = (day - SNAPSHOTS) * DAY_MS
        planned.append(FILES_EACH)
    crowd.clock.ahead_ms = 0
    for number in range(tables):
        crowd.table(f"other_{number}", commits=5)
    live = sorted(planned.live(), key=lambda item: item.path)
    crowd.writers["other_0"].commit("append", added=live[:1])
    for _ in range(SNAPSHOTS // 2):
        planned.overwrite([item.path for item in planned.live()], 1)
    return crowd


def configure(folder: Path, crowd: Crowd) -> None:
    settings = {CATALOG: {"type": "sql", "uri": crowd.pointers.uri}}
    (folder / ".pyiceberg.yaml").write_text(yaml.safe_dump({"catalog": settings}))
    (folder / "lake.yaml").write_text("sharing: lake\n")
    (folder / "none.yaml").write_text("sharing: none\n")
    os.environ |= {
        "PYICEBERG_HOME": str(folder),
        "FIRNLINE_CACHE": str(folder / "cache"),
        "FIRNLINE_CACHE_KEY": "b" * 32,
    }


def planned(folder: Path, policy: str, table: str) -> tuple[float, Plan]:
    started = time.perf_counter()
    view = open_lake(str(folder / f"{policy}.yaml"), engine="local").plan(table, older_than=now_ms(), retain_last=50)
    return time.perf_counter() - started, view.plan


def as_a_command(folder: Path, policy: str, table: str) -> float:
    """Seconds of the command, from the start of its process to its end."""
    firnline = str(Path(sys.executable).with_name("firnline"))
    command = [firnline, "plan", table, "--older-than", str(now_ms()), "--retain-last", "50"]
    started = time.perf_counter()
    subprocess.run([*command, "--config", str(folder / f"{policy}.yaml"), "--json"], check=True, capture_output=True)
    return time.perf_counter() - started


def main() -> None:
    tables = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        crowd = build(folder, tables)
        configure(folder, crowd)
        table = crowd.name("planned")
        planned(folder, "none", table)  # what a process loads, and the units of the planned table
        first, plan = planned(folder, "lake", table)
        if plan.asked != tables or plan.spared["needed-elsewhere"].files != 1:
            raise AssertionError(f"{plan.asked} tables were asked, and spared was {plan.spared}")
        rounds = [(planned(folder, "lake", table)[0], planned(folder, "none", table)[0]) for _ in range(ROUNDS)]
        inside = [median(times) for times in zip(*rounds, strict=True)]
        rounds = [(as_a_command(folder, "lake", table), as_a_command(folder, "none", table)) for _ in range(ROUNDS)]
        asking, alone = (median(times) for times in zip(*rounds, strict=True))
    print(f"{tables:,} tables, the first time: {first:.2f} s")
    print(f"without the start of a process, asking and not: {inside[0]:.3f} s and {inside[1]:.3f} s")
    print(f"a plan that asks them, all known: {asking:.3f} s; one that asks nobody: {alone:.3f} s")
    print(f"ratio {asking / alone:.2f}, at most {AT_MOST}")
    sys.exit(asking / alone > AT_MOST)


if __name__ == "__main__":
    main()
