"""Where Icechunk keeps what, below a repository's folder."""

from __future__ import annotations

import re
from typing import Final

from firnline.formats.icechunk.ids import NAME
from firnline.model.snapshots import RefKind

REPO: Final = "repo"
"""From version 2 on: all refs and the history."""
REFS: Final = "refs"
"""In version 1: a folder for each ref."""
SNAPSHOTS: Final = "snapshots"
MANIFESTS: Final = "manifests"
CHUNKS: Final = "chunks"
TRANSACTIONS: Final = "transactions"
OVERWRITTEN: Final = "overwritten"
"""Earlier versions of `repo`."""

REF: Final = "ref.json"
DELETED: Final = "ref.json.deleted"
"""Beside a tag's own file: the tag is gone, and no other may ever have its name."""

_REF_FILE = re.compile(r"(branch|tag)\.([^/]+)/(ref\.json(?:\.deleted)?)", re.DOTALL)
_NAME = re.compile(NAME)
_UNFINISHED = re.compile(r"[^/]+/ref\.json(?:\.deleted)?#[0-9]+", re.DOTALL)


def ref_file(path: str) -> tuple[RefKind, str, str] | None:
    """Returns the kind and the name of the ref whose file lies at a path below `refs`, and what the file is called;
    None where no writer of Icechunk wrote it.
    """
    match = _REF_FILE.fullmatch(path)
    if match is None or (match[1] == RefKind.BRANCH and match[3] == DELETED):
        return None
    return RefKind(match[1]), match[2], match[3]


def is_unfinished(path: str) -> bool:
    """Tells whether this is what a writer of local files has not yet renamed to the file of a ref."""
    return _UNFINISHED.fullmatch(path) is not None


def is_object_name(name: str) -> bool:
    """Tells whether a snapshot, manifest or chunk can have this name."""
    return _NAME.fullmatch(name) is not None
