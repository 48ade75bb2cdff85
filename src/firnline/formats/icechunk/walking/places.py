"""The folders that Icechunk's writers use, and the names that they give: nothing else is ever taken for one of theirs.

Refs, `repo` and the configuration are in no such folder: no search takes any of them. Earlier versions of `repo` go by
a retention of their own.
"""

from __future__ import annotations

from firnline.formats.icechunk import names
from firnline.model.files import FileKind
from firnline.model.locations import join
from firnline.ports.listings import WrittenFolder

FOLDERS = {
    names.CHUNKS: FileKind.CHUNK,
    names.MANIFESTS: FileKind.MANIFEST,
    names.TRANSACTIONS: FileKind.TRANSACTION_LOG,
    names.SNAPSHOTS: FileKind.SNAPSHOT,
}
"""In the order of deletion: what names others goes after what it names."""


def places_of(location: str) -> tuple[WrittenFolder, ...]:
    named = ((join(location, folder), ((names.NAME, kind),)) for folder, kind in FOLDERS.items())
    return tuple(WrittenFolder(folder, given, whole=True) for folder, given in named)


def backups_of(location: str) -> WrittenFolder:
    """Returns the folder in which version 2 leaves each `repo` that it replaced, and the names in there. If one of them
    is gone, the operations log ends there.
    """
    named = rf"{names.REPO}\.[0-9]+\.{names.NAME}"
    return WrittenFolder(join(location, names.OVERWRITTEN), ((named, FileKind.BACKUP),), whole=True)
