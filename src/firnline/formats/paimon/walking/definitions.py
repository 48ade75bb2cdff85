"""The schemas that files of snapshots were written with: which of them a branch has lost.

A snapshot names one schema, and its files may be older: each names its own, and Paimon's readers open that one to read
the file. So a snapshot can have all files and a schema, and yet be read by nobody.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from firnline.formats.opening import opened
from firnline.formats.paimon import names
from firnline.formats.paimon.reading.schema import schema_paths
from firnline.formats.paimon.reading.state import files_in
from firnline.formats.paimon.walking.entries import columns_of, manifest_entries, ops_of
from firnline.formats.paimon.walking.expand import PaimonExpand
from firnline.formats.paimon.walking.roots import roots_of
from firnline.model.files import File, FileKind
from firnline.model.locations import join
from firnline.model.portions import portions
from firnline.model.snapshots import snapshot_of
from firnline.ports.abilities import Undefined
from firnline.ports.expanding import SideBySide
from firnline.ports.formats import State
from firnline.ports.stores import Read

_LISTS = (FileKind.MANIFEST_LIST, FileKind.CHANGES_LIST)
_SCHEMA_ID = "_FILE._SCHEMA_ID"
_IDENTITY = (
    "_PARTITION", "_BUCKET", "_FILE._FILE_NAME", "_FILE._LEVEL", "_FILE._EXTRA_FILES", "_FILE._EMBEDDED_FILE_INDEX",
    "_FILE._EXTERNAL_PATH",
)  # fmt: skip
_THREADS = 8

Entry = tuple[int, tuple[object, ...]]
"""A file's schema, and what tells the file from others."""


def undefined_in(state: State, store: Read) -> Iterator[Undefined]:
    """Yields which schemas that live files of each snapshot were written with its branch does not have.

    Opens every list and every manifest once, for the schemas alone; entries are compared with each other only where
    one of those is gone. Raises UnreadableMetadata where a list or a manifest cannot be read.
    """
    lists: dict[str, list[File]] = {}
    for owner, file in roots_of(state):
        if file.kind in _LISTS:
            lists.setdefault(owner, []).append(file)
    branches = {names.branch_of_id(snapshot_of(owner)) for owner in lists}
    present = {branch: frozenset(schema_paths(files_in(state), branch)) for branch in branches}
    with ThreadPoolExecutor(_THREADS) as pool:
        walk = _SchemaWalk(store, SideBySide(pool))
        named = walk.schemas_of(file for files in lists.values() for file in files)
        lost: dict[Undefined, None] = {}
        for owner, files in lists.items():
            branch = names.branch_of_id(snapshot_of(owner))
            missing = frozenset[int]().union(*(named[file] for file in files)) - present[branch]
            place = join(state.location, f"{names.branch_folder(branch)}schema")
            for number in sorted(walk.live(files, missing)) if missing else ():
                lost[Undefined(snapshot_of(owner), f"schema-{number}", place)] = None
    yield from lost


@dataclass
class _SchemaWalk:
    """Opens lists and manifests, each manifest once for the schemas that it names."""

    store: Read
    together: SideBySide
    _named: dict[str, frozenset[int]] = field(default_factory=dict)
    _entries: dict[tuple[str, frozenset[int]], Counter[Entry]] = field(default_factory=dict)

    def schemas_of(self, lists: Iterable[File]) -> dict[File, frozenset[int]]:
        """Returns the schemas of all that each list names, removed or not."""
        found: dict[File, frozenset[int]] = {}
        for units, manifests in self._manifests(lists):
            every = {each.key: each for named in manifests for each in named}
            new = [each for key, each in every.items() if key not in self._named]
            self._named |= zip((each.key for each in new), self.together(self._schemas_in, new), strict=True)
            for unit, named in zip(units, manifests, strict=True):
                found[unit] = frozenset[int]().union(*(self._named[each.key] for each in named))
        return found

    def live(self, lists: Iterable[File], schemas: frozenset[int]) -> set[int]:
        """Returns those of the schemas that a file was written with which the lists add and do not take away."""
        count: Counter[Entry] = Counter()
        for manifest in (each for _, manifests in self._manifests(lists) for named in manifests for each in named):
            if self._named[manifest.key] & schemas:
                for entry, op in self._of_schemas(manifest, schemas).items():
                    count[entry] += op
        return {schema for (schema, _), number in count.items() if number > 0}

    def _manifests(self, lists: Iterable[File]) -> Iterator[tuple[list[File], list[Sequence[File]]]]:
        """Yields some lists at a time, with the manifests of each."""
        every = list(dict.fromkeys(lists))
        for kind in _LISTS:
            for units in portions(each for each in every if each.kind is kind):
                rows = PaimonExpand(self.store)(units, self.together).by_unit(len(units))
                yield units, [_manifests_in(each) for each in rows]

    def _schemas_in(self, manifest: File) -> frozenset[int]:
        with opened(self.store, manifest) as data:
            found, _ = columns_of([data], {_SCHEMA_ID: pa.int64()})
        return frozenset(pc.unique(found.column(_SCHEMA_ID).drop_null()).to_pylist())

    def _of_schemas(self, manifest: File, schemas: frozenset[int]) -> Counter[Entry]:
        """Returns the entries of files of these schemas, added ones as more than 0. Snapshots share manifests."""
        known = manifest.key, schemas
        if known not in self._entries:
            with opened(self.store, manifest) as data:
                found, _ = manifest_entries([data])
                ops = ops_of(found).to_pylist()
            count: Counter[Entry] = Counter()
            files = zip(*(found.column(name).to_pylist() for name in _IDENTITY), strict=True)
            for schema, file, op in zip(found.column(_SCHEMA_ID).to_pylist(), files, ops, strict=True):
                if schema in schemas:
                    count[schema, file] += op
            self._entries[known] = count
        return self._entries[known]


def _manifests_in(rows: pa.RecordBatch) -> Sequence[File]:
    columns = (rows.column(name).to_pylist() for name in ("key", "size", "opens"))
    return [File(FileKind.MANIFEST, key, size, opens) for key, size, opens in zip(*columns, strict=True) if opens]
