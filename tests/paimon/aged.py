"""Old files: a search for orphans takes nothing that is younger than a day."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from uuid import uuid4

from firnline.testing.dated import date
from harness.paimon.reader import walk

from .small import Copy

DAY_S = 24 * 3600
OWN = "/_firnline/"
MEANT: dict[str, Any] = {"grace": "0s", "consent": lambda plan: True, "blast_radius": 1.0}


def age(paths: Iterable[str], days: float = 10) -> None:
    at_ms = (time.time() - days * DAY_S) * 1000
    for path in paths:
        date(path, at_ms)


def disk(*folders: Path) -> set[str]:
    """Returns all files but firnline's own."""
    return {path for folder in folders for path in walk(folder) if OWN not in path}


def a_name(prefix: str, end: str = "") -> str:
    return f"{prefix}{uuid4()}-0{end}"


def strays(copy: Copy) -> set[str]:
    """Returns new files that Paimon's writers name so, and that nothing names: one of each kind, ten days old."""
    table = Path(copy.table)
    bucket = next(table.glob("p=*/bucket-0"))
    found = {
        bucket / a_name("data-", ".parquet"),
        bucket / a_name("data-", ".zstd.parquet"),
        bucket / a_name("data-", ".parquet.index"),
        bucket / a_name("changelog-", ".parquet"),
        table / "p=gone" / "bucket-3" / a_name("data-u-me-s-1-w-", ".avro"),
        table / "p=gone" / "bucket-postpone" / a_name("data-", ".orc"),
        *(table / "manifest" / a_name(each) for each in ("manifest-", "manifest-list-", "index-manifest-")),
        table / "index" / a_name("index-"),
        table / "index" / f"btree-global-index-{uuid4()}.index",
        table / "statistics" / a_name("stat-"),
        table / "snapshot" / f".snapshot-9.{uuid4()}.tmp",
        table / "changelog" / f".LATEST.{uuid4()}.tmp",
    }
    return _written(found)


def bystanders(copy: Copy) -> set[str]:
    """Returns new, old files that nothing names and that are nobody's to remove."""
    table = Path(copy.table)
    bucket = next(table.glob("p=*/bucket-0"))
    return _written(
        {
            bucket / a_name("index-"),
            bucket / a_name("data-", ".blob"),
            bucket / "_SUCCESS",
            bucket / "below" / a_name("data-", ".parquet"),
            bucket / f".{a_name('data-', '.parquet')}.tmp",
            table / "bucket-0" / a_name("data-", ".parquet"),
            table / "q=1" / "bucket-0" / a_name("data-", ".parquet"),
            table / "other" / "p=a" / "bucket-0" / a_name("data-", ".parquet"),
            table / "p=a" / a_name("data-", ".parquet"),
            table / "manifest" / "deep" / a_name("manifest-"),
            table / "manifest" / "manifest-mine",
            table / "index" / "index-mine",
            table / "index" / "deep" / a_name("index-"),
            table / "index" / a_name("data-", ".parquet"),
            table / "statistics" / "stat-1",
            table / "statistics" / a_name("index-"),
            table / "service" / "service-primary-key-lookup",
            table / "snapshot" / f"snapshot-9{uuid4()}.tmp",
            table / "tag" / "tags.txt",
            table / "README.md",
        }
    )


def _written(paths: Iterable[Path]) -> set[str]:
    named = {str(path) for path in paths}
    for path in map(Path, named):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"nobody's")
    age(named)
    return named
