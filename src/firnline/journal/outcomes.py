"""What became of each file on the written list: one Parquet object per part and attempt."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from firnline.errors import AlreadyExists
from firnline.journal.layout import RecordFolder
from firnline.journal.parts import ListAndGet, as_parquet, part_keys, read_part
from firnline.model.files import Tally
from firnline.model.locations import join
from firnline.ports.stores import PutIfAbsent

_NAME = re.compile(r"(.+)-(\d+)\.parquet$")


class Outcome(StrEnum):
    DELETED = "deleted"
    MISSING = "missing"
    FAILED = "failed"
    SPARED = "spared"


@dataclass(frozen=True, slots=True)
class Row:
    """One file's end. `why` says what spared it or why its delete failed."""

    key: str
    kind: str
    size: int
    outcome: Outcome
    why: str = ""


def outcome_keys(store: ListAndGet, folder: RecordFolder) -> dict[str, list[str]]:
    """Returns the objects of outcomes by part, attempts in order."""
    found: dict[str, list[tuple[int, str]]] = {}
    for key in part_keys(store, folder.outcomes):
        match = _NAME.match(key.rpartition("/")[2])
        if match:
            found.setdefault(match[1], []).append((int(match[2]), key))
    return {part: [key for _, key in sorted(attempts)] for part, attempts in found.items()}


def write_outcomes(store: PutIfAbsent, folder: RecordFolder, part: str, attempt: int, rows: Iterable[Row]) -> None:
    """Writes what happened. After a crash the same part is done again: then the first account stands."""
    import pyarrow as pa

    listed = list(rows)
    table = pa.table(
        {
            "path": pa.array([row.key for row in listed], pa.string()),
            "kind": pa.array([row.kind for row in listed], pa.string()),
            "size": pa.array([row.size for row in listed], pa.int64()),
            "outcome": pa.array([row.outcome.value for row in listed], pa.string()),
            "why": pa.array([row.why for row in listed], pa.string()),
        }
    )
    try:
        store.put_if_absent(join(folder.outcomes, f"{part}-{attempt}.parquet"), as_parquet(table))
    except AlreadyExists:
        return


def read_rows(store: ListAndGet, key: str) -> list[Row]:
    """Returns what became of the files of one part in one attempt."""
    table = read_part(store, key)
    said = (table.column(name).to_pylist() for name in ("path", "kind", "size", "outcome", "why"))
    return [Row(path, kind, size, Outcome(outcome), why) for path, kind, size, outcome, why in zip(*said, strict=True)]


def failed_paths(store: ListAndGet, key: str) -> list[str]:
    """Returns the files of an attempt whose delete failed: what the next attempt is about."""
    table = read_part(store, key)
    rows = zip(table.column("path").to_pylist(), table.column("outcome").to_pylist(), strict=True)
    return [path for path, outcome in rows if outcome == Outcome.FAILED]


@dataclass(frozen=True, slots=True)
class OutcomeAccount:
    """What became of a run's files: files and bytes by outcome and reason, and the first files one by one."""

    by_reason: Mapping[tuple[Outcome, str], Tally]
    files: tuple[Row, ...]

    def to_json(self) -> dict[str, Any]:
        reasons = [
            {"outcome": outcome.value, "why": why, "files": each.files, "bytes": each.bytes}
            for (outcome, why), each in self.by_reason.items()
        ]
        files = [
            {"path": row.key, "kind": row.kind, "size": row.size, "outcome": row.outcome.value, "why": row.why}
            for row in self.files
        ]
        return {"by_reason": reasons, "files": files}


def outcome_account(store: ListAndGet, folder: RecordFolder, shown: int) -> OutcomeAccount:
    """Returns what became of each file, so many of them one by one; a file that failed first counts by its last attempt
    only.
    """
    sums: dict[tuple[Outcome, str], Tally] = {}
    files: list[Row] = []
    for attempts in outcome_keys(store, folder).values():
        for key in attempts:
            superseded = key != attempts[-1]
            for each in read_part(store, key).to_pylist():
                outcome, why = Outcome(each["outcome"]), str(each["why"] or "")
                if superseded and outcome is Outcome.FAILED:
                    continue
                sums[outcome, why] = sums.get((outcome, why), Tally()) + Tally(1, each["size"])
                if len(files) < shown:
                    files.append(Row(each["path"], each["kind"], each["size"], outcome, why))
    return OutcomeAccount(dict(sorted(sums.items())), tuple(files))


def outcome_totals(store: ListAndGet, folder: RecordFolder) -> Mapping[str, Tally]:
    """Returns files and bytes by outcome; a file that failed first counts by its last attempt only."""
    files: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for attempts in outcome_keys(store, folder).values():
        for key in attempts:
            table = read_part(store, key)
            superseded = key != attempts[-1]
            for outcome, size in zip(
                table.column("outcome").to_pylist(), table.column("size").to_pylist(), strict=True
            ):
                if not (superseded and outcome == Outcome.FAILED):
                    files[outcome] += 1
                    sizes[outcome] += size
    return {outcome: Tally(files[outcome], sizes[outcome]) for outcome in Outcome if files[outcome]}
