"""Large Paimon tables whose metadata is written directly, by every core, of the same shapes as large Iceberg tables.

Commit i adds one manifest of new files, named by its delta list; where it removes files of older commits, another one
says so. The base list names what was live before it, as if Paimon had merged away at once what was removed. So the
right victims are known without reading a file.
"""

from __future__ import annotations

import json
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness.large.row_bytes import Bytes, blocks_of, container
from harness.large.tables import START_MS, STEP_MS, LargeShape
from harness.paimon.large_rows import ADD, CODEC, DELETE, LargeEntries, entry_schema, list_schema, listed

BUCKETS = 4
_SHARE = 64
"""Commits that a process writes before it takes more."""

_OPTIONS = {
    "bucket": str(BUCKETS),
    "firnline.paimon.time-retained": "own",
    "snapshot.expire.limit": "2147483647",
}


@dataclass(frozen=True, slots=True)
class LargePaimon:
    """A table in a folder. Nothing but its metadata is written."""

    folder: Path
    shape: LargeShape

    def write(self) -> None:
        for name in ("schema", "snapshot", "tag", "manifest"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / "schema" / "schema-0").write_text(json.dumps(self._schema()))
        starts = range(1, self.shape.snapshots + 1, _SHARE)
        with ProcessPoolExecutor(os.cpu_count()) as pool:
            sizes = {name: size for share in pool.map(self._manifests, starts) for name, size in share.items()}
            list(pool.map(self._snapshots, starts, [sizes] * len(starts)))
        for name, commit in self.shape.tags().items():
            text = (self.folder / "snapshot" / f"snapshot-{commit}").read_text()
            (self.folder / "tag" / f"tag-{name}").write_text(text)

    def entries(self) -> int:
        """Returns how many entries all manifests have."""
        removed = self.shape.removed(self.shape.snapshots)
        return (self.shape.snapshots + removed) * self.shape.files

    def victims(self, last: int) -> dict[str, int]:
        """Returns how many files of each kind go when all snapshots up to `last` expire."""
        kept = self.shape.kept(last)
        gone = [commit for commit in range(1, last + 1) if commit not in kept]
        lost = {each for commit in gone for each in self._named(commit)}
        lost -= {each for commit in kept for each in self._named(commit)}
        dropping = sum(bool(self.shape.drops(commit)) for commit in gone)
        data = self.shape.victims(last)["data"]
        return {"data": data, "manifest": len(lost) + dropping, "manifest-list": 2 * len(gone)}

    def _named(self, commit: int) -> set[int]:
        """Returns the commits whose added files the lists of a snapshot name."""
        return {*self.shape.held(commit - 1), commit}

    def _share(self, start: int) -> range:
        return range(start, min(start + _SHARE, self.shape.snapshots + 1))

    def _manifests(self, start: int) -> dict[str, int]:
        """Writes the manifests of a share; returns their sizes by name."""
        entries = LargeEntries(self.shape.columns, self.shape.partitions, BUCKETS)
        sizes = {}
        for commit in self._share(start):
            added = entries.rows(commit, self.shape.files, ADD)
            sizes[_name(commit, ADD)] = self._manifest(_name(commit, ADD), added)
            gone = [entries.rows(each, self.shape.files, DELETE) for each in self.shape.drops(commit)]
            if gone:
                sizes[_name(commit, DELETE)] = self._manifest(_name(commit, DELETE), np.concatenate(gone))
        return sizes

    def _manifest(self, name: str, rows: Bytes) -> int:
        return self._written(name, container(entry_schema(), {}, blocks_of(rows), CODEC))

    def _written(self, name: str, data: bytes) -> int:
        (self.folder / "manifest" / name).write_bytes(data)
        return len(data)

    def _snapshots(self, start: int, sizes: dict[str, int]) -> None:
        for commit in self._share(start):
            files, dropped = self.shape.files, len(self.shape.drops(commit)) * self.shape.files
            base = [self._entry(each, ADD, sizes, files, 0) for each in self.shape.held(commit - 1)]
            delta = [self._entry(commit, ADD, sizes, files, 0)]
            delta += [self._entry(commit, DELETE, sizes, 0, dropped)] if dropped else []
            lists = [self._list(commit, number, named) for number, named in enumerate((base, delta))]
            said = json.dumps(self._snapshot(commit, *lists))
            (self.folder / "snapshot" / f"snapshot-{commit}").write_text(said)

    def _entry(self, commit: int, kind: int, sizes: dict[str, int], added: int, deleted: int) -> bytes:
        name = _name(commit, kind)
        return listed(name, sizes[name], added, deleted)

    def _list(self, commit: int, number: int, named: list[bytes]) -> int:
        return self._written(f"manifest-list-{commit:08d}-{number}", container(
            list_schema(), {}, [(len(named), b"".join(named))] if named else [], CODEC
        ))  # fmt: skip

    def _snapshot(self, commit: int, base: int, delta: int) -> dict[str, int | str]:
        records = len(self.shape.held(commit)) * self.shape.files
        return {
            "version": 3,
            "id": commit,
            "schemaId": 0,
            "baseManifestList": f"manifest-list-{commit:08d}-0",
            "baseManifestListSize": base,
            "deltaManifestList": f"manifest-list-{commit:08d}-1",
            "deltaManifestListSize": delta,
            "commitUser": "large",
            "commitIdentifier": commit,
            "commitKind": "OVERWRITE",
            "timeMillis": START_MS + commit * STEP_MS,
            "totalRecordCount": records,
            "deltaRecordCount": self.shape.files,
        }

    def _schema(self) -> dict[str, object]:
        names = ["part", "key", *(f"c{each}" for each in range(3, self.shape.columns + 1))]
        kinds = {"part": "INT NOT NULL", "key": "INT NOT NULL"}
        fields = [{"id": at, "name": name, "type": kinds.get(name, "STRING")} for at, name in enumerate(names)]
        return {
            "version": 3,
            "id": 0,
            "fields": fields,
            "highestFieldId": len(fields) - 1,
            "partitionKeys": ["part"],
            "primaryKeys": ["part", "key"],
            "options": _OPTIONS,
            "timeMillis": START_MS,
        }


def _name(commit: int, kind: int) -> str:
    return f"manifest-{commit:08d}-{kind}"
