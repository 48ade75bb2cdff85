"""The names that Iceberg's writers give their files, so that nothing else is ever taken for one of them.

Java and PyIceberg name metadata `00012-UUID.metadata.json`, `v12.metadata.json` (path tables), both also gzipped;
lists `snap-ID-ATTEMPT-UUID.avro`; manifests `UUID-mN.avro` (Spark) or `optimized-m-UUID.avro`; statistics `*.stats` or
`*.puffin`. Data files are told by their ending alone: every engine has a habit of its own.
"""

from __future__ import annotations

from collections.abc import Mapping

from firnline.errors import UnsupportedFormat
from firnline.formats.iceberg.fields import damaged, is_text
from firnline.model.files import FileKind
from firnline.model.locations import is_dotted, join
from firnline.ports.listings import WrittenFolder

DOCUMENT = r"[^/]+\.metadata\.json(?:\.gz)?"
DOCUMENT_NAMES = ((DOCUMENT, FileKind.METADATA),)
METADATA_NAMES = (
    *DOCUMENT_NAMES,
    (r"partition-stats-[^/]+\.(?:parquet|orc|avro)", FileKind.PARTITION_STATISTICS),
    (r"snap-[^/]+\.avro", FileKind.MANIFEST_LIST),
    (r"[^/.][^/]*\.avro", FileKind.MANIFEST),
    (r"[^/.][^/]*\.(?:stats|puffin)", FileKind.STATISTICS),
)
DATA_NAMES = (
    (r"[^/._][^/]*\.(?:parquet|orc|avro)", FileKind.DATA),
    (r"[^/._][^/]*\.puffin", FileKind.DELETION_VECTORS),
)


def places_of(location: str, properties: Mapping[str, str]) -> tuple[WrittenFolder, ...]:
    """Returns the folders that the table's writers use: its own `metadata` and `data`, and what its properties name."""
    metadata = properties.get("write.metadata.path") or join(location, "metadata")
    named = ("write.data.path", "write.object-storage.path", "write.folder-storage.path")
    data = [join(location, "data"), *(properties[name] for name in named if properties.get(name))]
    both = {join(location, "metadata"), metadata}
    return (
        *(WrittenFolder(folder, METADATA_NAMES) for folder in sorted(both)),
        *(WrittenFolder(folder, DATA_NAMES) for folder in data),
    )


def plain_path(path: str, where: str) -> str:
    """Returns the path. Raises UnsupportedFormat, with `where` it is named, for a segment `.` or `..` in it, and
    UnreadableMetadata for half of a character, which JSON can write and no store has in a name.
    """
    if not is_text(path):
        raise damaged(where, f"the path {path!r} has half a character")
    if is_dotted(path):
        problem = dotted(path)
        raise UnsupportedFormat(f"{where}: {problem.message}", hint=problem.flags)
    return path


def dotted(path: str) -> UnsupportedFormat:
    return UnsupportedFormat(
        f"the path {path!r} has a segment '.' or '..'",
        hint="nobody can tell whether it is the same file as another path; nothing was changed",
    )
