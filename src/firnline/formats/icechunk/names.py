"""Where Icechunk keeps what, below a repository's folder."""

from __future__ import annotations

import re
from typing import Final

from firnline.model.snapshots import RefKind

LETTERS: Final = 20
NAME: Final = rf"[0-9A-HJKMNP-TV-Z]{{{LETTERS - 1}}}[0G]"
"""What the names of snapshots, manifests and chunks look like: of the last letter only one bit is used."""

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
_SEEN_TAG = re.compile(r"""[ !$&'()+,\-.0-9:;=@A-Z_a-z]+""")
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


def is_seen_tag(name: str) -> bool:
    """Tells whether the library lists a tag of this name wherever it made it. On local files it writes any other letter
    or sign with percent signs, lists no such tag, and collects what only that one holds.
    """
    return _SEEN_TAG.fullmatch(name) is not None


DOCUMENTS: Final = (rf"{REPO}", rf"{REFS}/branch\.[^/]+/{re.escape(REF)}")
"""Ends of the names of objects that name snapshots: where one lies, a repository may."""
_DOCUMENT = re.compile(rf"(.+)/(?:{'|'.join(DOCUMENTS)})", re.DOTALL)


def table_folder(document: str) -> str | None:
    """Returns the folder of the repository that such an object belongs to, by its name alone."""
    match = _DOCUMENT.fullmatch(document)
    return match[1] if match else None
