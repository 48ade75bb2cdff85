"""Large Iceberg tables whose metadata is written directly, by every core: a million files take minutes.

Commit i adds one manifest of new files; every `cadence`-th commit also removes the files of the oldest `cadence`
manifests that are live, so that about `live` stay. Which manifests a snapshot names follows from its number alone:
any process can write any of them, a table can grow later, and the right victims are known without reading a file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import numpy as np

from firnline.testing.manifests import Status
from harness.large.row_bytes import Entries, blocks_of, container, number, text
from harness.large.schemas import document, entry_schema, list_schema, manifest_metadata

FIRST_ID = 3_000_000_000_000_000_000
START_MS = 1_767_225_600_000
STEP_MS = 60_000
_SHARE = 64
"""Commits that a process writes before it takes more."""


@dataclass(frozen=True, slots=True)
class LargeShape:
    """What a table looks like. `refs`: main, and tags spread evenly over the snapshots."""

    snapshots: int
    files: int
    live: int = 45
    cadence: int = 1
    columns: int = 20
    refs: int = 11
    partitions: int = 16

    def removed(self, commit: int) -> int:
        """Returns the newest commit whose files are gone once this one is made."""
        return max(0, (commit - self.live) // self.cadence * self.cadence)

    def drops(self, commit: int) -> range:
        """Returns the commits whose files this one removes."""
        return range(self.removed(commit - 1) + 1, self.removed(commit) + 1)

    def held(self, commit: int) -> range:
        """Returns the commits whose files a snapshot holds."""
        return range(self.removed(commit) + 1, commit + 1)

    def tags(self) -> dict[str, int]:
        places = np.linspace(1, self.snapshots, self.refs + 1)[1:-1]
        return {f"tag-{place}": int(commit) for place, commit in enumerate(places, 1)}

    def kept(self, last: int) -> set[int]:
        """Returns the snapshots that stay when all up to `last` expire except what refs name."""
        return set(range(last + 1, self.snapshots + 1)) | set(self.tags().values()) | {self.snapshots}

    def victims(self, last: int) -> dict[str, int]:
        """Returns how many files of each kind go when all snapshots up to `last` expire."""
        kept = self.kept(last)
        gone = [commit for commit in range(1, last + 1) if commit not in kept]
        held = {each for commit in kept for each in self.held(commit)}
        seen = {each for commit in gone for each in self.held(commit)}
        lost = len(seen - held)
        dropping = sum(bool(self.drops(commit)) for commit in gone)
        return {"data": lost * self.files, "manifest": lost + dropping, "manifest-list": len(gone)}


SHAPES = {
    "A": LargeShape(2_039, 54),
    "B": LargeShape(1_019, 1_075, live=200, cadence=8, refs=2),
    "wide": LargeShape(100_000, 20, live=45, cadence=9, refs=51),
    "tiny": LargeShape(60, 8, live=10, cadence=2, refs=3),
}


@dataclass(frozen=True, slots=True)
class LargeTable:
    """A table below a folder, in the layout of Iceberg's Hadoop catalog."""

    folder: Path
    shape: LargeShape

    @property
    def location(self) -> str:
        return f"file://{self.folder}"

    @property
    def entries(self) -> Entries:
        return Entries(f"{self.location}/data", self.shape.columns, self.shape.partitions)

    def timestamp(self, commit: int) -> int:
        return START_MS + commit * STEP_MS

    def write(self, first: int = 1, *, data: bool = False, version: int = 1, alone: bool = False) -> None:
        """Writes all commits from `first` on, and the document. `data`: an empty file for each that is named. `alone`:
        by this process, as many small tables are written best.
        """
        for folder in ("metadata", "data"):
            (self.folder / folder).mkdir(parents=True, exist_ok=True)
        for part in range(self.shape.partitions if data else 0):
            (self.folder / "data" / f"part={64 + part:04d}").mkdir(exist_ok=True)
        oldest = self.shape.removed(first) + 1
        with nullcontext() if alone else ProcessPoolExecutor(os.cpu_count()) as pool:
            spread = map if pool is None else pool.map
            written = spread(partial(self._manifests, data=data, first=first), range(oldest, self._end(), _SHARE))
            manifests = {commit: made for share in written for commit, made in share.items()}
            shares = [self._share(start) for start in range(first, self._end(), _SHARE)]
            list(spread(self._lists, shares, [self._within_reach(manifests, share) for share in shares]))
        self._publish(version)

    def _end(self) -> int:
        return self.shape.snapshots + 1

    def _share(self, start: int) -> range:
        return range(start, min(start + _SHARE, self._end()))

    def _manifests(self, start: int, *, data: bool, first: int) -> dict[int, list[bytes]]:
        """Returns, for each commit of a share, its manifests as entries of a list; writes those that are new."""
        made = {}
        for commit in self._share(start):
            made[commit] = [self._added(commit, new=commit >= first)]
            if self.shape.drops(commit) and commit >= first:
                made[commit].append(self._dropped(commit))
            for path in self.entries.paths(commit, self.shape.files) if data and commit >= first else ():
                os.close(os.open(path.removeprefix("file://"), os.O_CREAT | os.O_WRONLY))
        return made

    def _added(self, commit: int, *, new: bool) -> bytes:
        path = self.folder / "metadata" / f"{commit:08d}-m0.avro"
        if new:
            template = self.entries.template(Status.ADDED, FIRST_ID + commit, None)
            self._manifest(path, self.entries.rows(commit, self.shape.files, template))
        return self._listed(path, commit, (self.shape.files, 0))

    def _dropped(self, commit: int) -> bytes:
        path = self.folder / "metadata" / f"{commit:08d}-m1.avro"
        rows = []
        for each in self.shape.drops(commit):
            template = self.entries.template(Status.DELETED, FIRST_ID + commit, self.shape.snapshots + 8_192)
            rows.append(self.entries.rows(each, self.shape.files, template))
        self._manifest(path, np.concatenate(rows))
        return self._listed(path, commit, (0, sum(map(len, rows))))

    def _manifest(self, path: Path, rows: Any) -> None:
        schema = entry_schema(self.shape.columns)
        path.write_bytes(container(schema, manifest_metadata(self.shape.columns), blocks_of(rows)))

    def _listed(self, path: Path, commit: int, counts: tuple[int, int]) -> bytes:
        """Returns the manifest as an entry of a list."""
        added, deleted = counts
        numbers = (path.stat().st_size, 0, 0, commit, commit, FIRST_ID + commit, added, 0, deleted)
        rows = (added * 1_000, 0, deleted * 1_000)
        return text(f"file://{path}") + b"".join(map(number, (*numbers, *rows))) + b"\x00\x00"

    def _within_reach(self, manifests: dict[int, list[bytes]], share: range) -> dict[int, list[bytes]]:
        """Returns the manifests that some list of the share names: the others need not travel."""
        return {commit: manifests[commit] for commit in range(self.shape.removed(share[0]) + 1, share[-1] + 1)}

    def _lists(self, share: range, manifests: dict[int, list[bytes]]) -> None:
        for commit in share:
            named = [manifests[each][0] for each in self.shape.held(commit)] + manifests[commit][1:]
            metadata = {"snapshot-id": str(FIRST_ID + commit), "format-version": "2"}
            data = container(list_schema(), metadata, [(len(named), b"".join(named))])
            Path(self._list_path(commit)).write_bytes(data)

    def _list_path(self, commit: int) -> str:
        return str(self.folder / "metadata" / f"snap-{commit:08d}.avro")

    def _publish(self, version: int) -> None:
        made = document(self.location, str(uuid5(NAMESPACE_URL, self.location)), self.shape.columns)
        heads = {"main": {"snapshot-id": FIRST_ID + self.shape.snapshots, "type": "branch"}}
        heads |= {name: {"snapshot-id": FIRST_ID + at, "type": "tag"} for name, at in self.shape.tags().items()}
        now = self.timestamp(self.shape.snapshots)
        made |= {"last-updated-ms": now, "last-sequence-number": self.shape.snapshots, "refs": heads}
        made |= {"current-snapshot-id": FIRST_ID + self.shape.snapshots, "snapshots": list(self._snapshots())}
        made["snapshot-log"] = [
            {"timestamp-ms": self.timestamp(each), "snapshot-id": FIRST_ID + each} for each in range(1, self._end())
        ]
        (self.folder / "metadata" / f"v{version}.metadata.json").write_text(json.dumps(made))
        (self.folder / "metadata" / "version-hint.text").write_text(str(version))

    def _snapshots(self) -> Iterator[dict[str, Any]]:
        for commit in range(1, self._end()):
            held = str(len(self.shape.held(commit)) * self.shape.files)
            parent = {"parent-snapshot-id": FIRST_ID + commit - 1} if commit > 1 else {}
            yield parent | {
                "snapshot-id": FIRST_ID + commit,
                "sequence-number": commit,
                "timestamp-ms": self.timestamp(commit),
                "summary": {"operation": "overwrite", "total-data-files": held},
                "manifest-list": f"file://{self._list_path(commit)}",
                "schema-id": 0,
            }
