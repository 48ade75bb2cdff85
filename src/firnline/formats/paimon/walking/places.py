r"""The names that Paimon's writers give their files, so that nothing else is ever taken for one of them.

In `manifest`: `manifest-UUID-N`, `manifest-list-UUID-N`, `index-manifest-UUID-N`; Python leaves the number out here and
there, and puts `….avro.sidecar` beside a manifest. In the folder of a bucket: `data-UUID-N.parquet` and
`changelog-UUID-N.parquet`, with prefixes that options change, a compression before the ending, or an index after it.
In `index`, or in buckets where the table says so: `index-UUID-N`, and `KIND-global-index-UUID.index`. In `statistics`:
`stat-UUID-N`. Beside snapshots and changelogs, of every branch: `.snapshot-N.UUID.tmp` and the like, which a writer
that was killed left before it had a name.

Everything else that a table has is not searched: snapshots, tags, branches, schemas, consumers and services. Nor are
blobs: rows point at them, and rows are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from firnline.formats.paimon import names
from firnline.formats.paimon.reading import fields
from firnline.formats.paimon.reading.branches import branches_of
from firnline.formats.paimon.reading.schema import Schema
from firnline.formats.paimon.reading.state import files_in
from firnline.formats.paimon.walking.layout import Layout
from firnline.formats.paimon.walking.partitions import escaped
from firnline.model.files import FileKind
from firnline.model.locations import identity, join, stem_of
from firnline.ports.formats import State
from firnline.ports.listings import WrittenFolder

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_END = r"\.(?:[a-z0-9]+\.)?(?:parquet|orc|avro|row|lance|csv|json|text)(?:\.index)?"
_MANIFESTS = (
    (rf"manifest-list-{_UUID}(?:-[0-9]+)?", FileKind.MANIFEST_LIST),
    (rf"index-manifest-{_UUID}(?:-[0-9]+)?", FileKind.INDEX_MANIFEST),
    (rf"manifest-{_UUID}(?:-[0-9]+|-changelog)?", FileKind.MANIFEST),
    (rf"manifest-{_UUID}[^/]*\.avro\.sidecar", FileKind.INDEX),
)
_INDEXES = (
    (rf"index-{_UUID}-[0-9]+", FileKind.INDEX),
    (rf"[A-Za-z0-9_.-]+-global-index-{_UUID}\.index", FileKind.INDEX),
)
_STATISTICS = ((rf"stat-{_UUID}-[0-9]+", FileKind.STATISTICS),)
_UNFINISHED = ((rf"\.(?:(?:snapshot|changelog)-[0-9]+|EARLIEST|LATEST)\.{_UUID}\.tmp", FileKind.UNFINISHED),)
_PREFIXES = {"changelog-file.prefix": ("changelog-", FileKind.CHANGELOG), "data-file.prefix": ("data-", FileKind.DATA)}
_CLEAN = ("snapshot.clean-empty-directories", "snapshot.expire.clean-empty-directories")
"""What asks for empty folders to be removed; the second is its earlier name."""


def places_of(state: State) -> tuple[WrittenFolder, ...]:
    """Returns the folders of manifests, indexes, statistics and of each branch's snapshots, and where the folders of
    buckets begin: in the table's own and elsewhere.
    """
    branches = branches_of(files_in(state), state.location)
    schemas = [branch.schema for branch in branches.values()]
    layout = Layout.of(state.location, schemas[0])
    beside_data = any(Layout.of(state.location, schema).index_beside_data for schema in schemas)
    buckets = (*_in_buckets(schemas), *(_indexes_in_buckets(schemas[0]) if beside_data else ()))
    return (
        WrittenFolder(layout.manifest_folder, _MANIFESTS, whole=True),
        WrittenFolder(layout.index_folder, _INDEXES, whole=True),
        WrittenFolder(layout.statistics_folder, _STATISTICS, whole=True),
        *(WrittenFolder(folder, _UNFINISHED, whole=True) for folder in _of_snapshots(state.location, branches)),
        *(WrittenFolder(folder, buckets, whole=True) for folder in _data_folders(state, layout)),
    )


def emptied_of(state: State, folders: Iterable[str]) -> list[str]:
    """Returns the folders of buckets among these, and of the partitions around them, innermost first, where the table
    has the option to remove those that are empty.
    """
    schema = branches_of(files_in(state), state.location)[names.MAIN].schema
    said = next((option for option in _CLEAN if option in schema.options), None)
    if said is None or not fields.flag(schema.options, said, False, schema.where):
        return []
    layout, found = Layout.of(state.location, schema), set[str]()
    begins = "|".join(re.escape(stem_of(folder)) for folder in _data_folders(state, layout))
    bucket = re.compile(f"(?:{begins})(?:{_bucket(schema)})")
    for folder in folders:
        if bucket.fullmatch(identity(folder)):
            found |= {folder.rsplit("/", above)[0] for above in range(len(schema.partition) + 1)}
    return sorted(found, key=lambda folder: (-folder.count("/"), folder))


def _of_snapshots(location: str, branches: Iterable[str]) -> Iterator[str]:
    for branch in branches:
        for folder in ("snapshot", "changelog"):
            yield join(location, f"{names.branch_folder(branch)}{folder}")


def _data_folders(state: State, layout: Layout) -> list[str]:
    return [join(root, layout.data_folder) if layout.data_folder else root for root in state.owned]


def _in_buckets(schemas: list[Schema]) -> Iterator[tuple[str, FileKind]]:
    """Yields the paths of data files: exactly as many folders deep as the table has partition keys, and in a bucket."""
    folder = _bucket(schemas[0])
    for option, (usual, kind) in _PREFIXES.items():
        prefixes = sorted({re.escape(schema.options.get(option, usual)) for schema in schemas} | {usual})
        yield rf"{folder}/(?:{'|'.join(prefixes)})[^/]*{_UUID}-[0-9]+{_END}", kind


def _indexes_in_buckets(schema: Schema) -> Iterator[tuple[str, FileKind]]:
    return ((f"{_bucket(schema)}/{name}", kind) for name, kind in _INDEXES)


def _bucket(schema: Schema) -> str:
    keys = (re.escape(escaped(key)) for key, _ in schema.partition)
    return "".join(f"{key}=[^/]*/" for key in keys) + "bucket-(?:[0-9]+|postpone)"
