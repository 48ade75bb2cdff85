"""One measured process: looks for garbage in an Icechunk repository, some times over, and says what it found.

chunks_child.py WAY FOLDER TIMES MEMORY, with WAY `library`, `threads` or `spark`. Prints JSON, as child.py does.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from firnline.model.times import DAY_MS
from parts.child import cpu_s

Look = Callable[[], dict[str, int]]


def library(folder: str) -> Look:
    """Icechunk's own collection, as a dry run."""
    import icechunk

    repo = icechunk.Repository.open(icechunk.local_filesystem_storage(folder))

    def look() -> dict[str, int]:
        found = repo.garbage_collect(datetime.now(UTC) + timedelta(days=1), dry_run=True)
        return {
            "chunk": found.chunks_deleted,
            "manifest": found.manifests_deleted,
            "snapshot": found.snapshots_deleted,
            "transaction-log": found.transaction_logs_deleted,
        }

    return look


def firnline(folder: str, engine: str, session: Any = None) -> Look:
    """A search for orphans, as a dry run in a world where the files that were just written are old."""
    from firnline.lake import open_lake
    from firnline.testing.dated import Clock

    lake = open_lake(engine=engine, session=session)
    lake.places.clock = Clock(ahead_ms=5 * DAY_MS)

    def look() -> dict[str, int]:
        plan, _ = lake.orphans(folder, dry_run=True)
        return {str(kind): tally.files for kind, tally in plan.victims.by_kind.items()}

    return look


def looking(way: str, folder: str, memory: str) -> Look:
    if way == "library":
        return library(folder)
    if way == "threads":
        return firnline(folder, "local")
    from parts.session import started

    return firnline(folder, "spark", started(Path(folder).parent, memory))


def peak_mib() -> int:
    """The most that this process itself ever held; of Spark the driver's Python alone."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def main() -> None:
    way, folder, times, memory = sys.argv[1:]
    begun = time.perf_counter()
    look = looking(way, folder, memory)
    told = {"session_s": round(time.perf_counter() - begun, 2), "before_mib": peak_mib()}
    print(json.dumps(told), flush=True)
    for _ in range(int(times)):
        start, spent = time.perf_counter(), cpu_s()
        found = look()
        ended = time.perf_counter()
        answer = {"seconds": round(ended - start, 2), "cpu_s": round(cpu_s() - spent, 2), "found": found}
        print(json.dumps({**answer, "peak_mib": peak_mib(), "after_s": 0.0}), flush=True)


if __name__ == "__main__":
    main()
