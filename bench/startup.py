"""A plan of a table too small to need Spark, against `python -c "import pyarrow"`: medians, in turns.

Exits 1 if the plan takes more than 4 times as long, or starts a JVM; or if `--help` takes more than 0.3 s of processor
time.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from parts.measuring import machine
from parts.reporting import FOLDER

from harness.large.tables import SHAPES, START_MS, STEP_MS, LargeTable

CEILING = 4.0
HELP_SECONDS = 0.3
TURNS = 7


def seconds(command: list[str], environment: dict[str, str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, env={**os.environ, **environment}, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def processor_seconds(command: list[str], environment: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds(command, environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(folder: Path) -> dict[str, float]:
    table = LargeTable(folder / "tiny", SHAPES["tiny"])
    table.write()
    half = str(START_MS + table.shape.snapshots // 2 * STEP_MS)
    firnline = str(Path(sys.executable).with_name("firnline"))
    plan = [firnline, "plan", str(table.folder), "--older-than", half]
    ways = {"plan": [*plan, "--retain-last", "1", "--json"], "pyarrow": [sys.executable, "-c", "import pyarrow"]}
    # No java can be found: a plan that wanted one would fail.
    alone = {"JAVA_HOME": str(folder), "PATH": "/nonexistent", "FIRNLINE_CACHE": "off", "HOME": str(folder)}
    times: dict[str, list[float]] = {name: [] for name in (*ways, "help")}
    for _ in range(TURNS):
        for name, command in ways.items():
            times[name].append(seconds(command, alone))
        times["help"].append(processor_seconds([firnline, "--help"], alone))
    return {name: round(statistics.median(each), 3) for name, each in times.items()}


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        medians = measure(Path(folder))
    ratio = round(medians["plan"] / medians["pyarrow"], 2)
    print(
        f"plan {medians['plan']:.2f} s, import pyarrow {medians['pyarrow']:.2f} s: {ratio} times (at most {CEILING:g})"
    )
    print(f"--help {medians['help']:.2f} s of processor time (at most {HELP_SECONDS:g})")
    FOLDER.mkdir(parents=True, exist_ok=True)
    answer = {
        "seconds": medians,
        "ratio": ratio,
        "ceiling": CEILING,
        "help_ceiling": HELP_SECONDS,
        "machine": machine(),
    }
    (FOLDER / "startup.json").write_text(json.dumps(answer, indent=1) + "\n")
    return 0 if ratio <= CEILING and medians["help"] <= HELP_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
