"""Where Paimon keeps what, below a table's folder and below the folder of each branch."""

from __future__ import annotations

import re
from urllib.parse import quote

from firnline.journal.layout import PROPERTIES
from firnline.model.locations import is_dotted

MAIN = ""
"""The branch whose folder is the table's own."""

BRANCHES = "branch"
DOCUMENT = r"schema/schema-[0-9]+"
"""Where such an object lies, a table begins."""

_FILE = r"(?:snapshot|changelog|schema|tag|consumer)/[^/]+|tag/tag-.+|consumer/consumer-.+"
_BRANCH = re.compile(rf"branch/branch-(?:(.+?)/({_FILE})|([^/]+)/(.+))", re.DOTALL)
_NUMBERED = re.compile(r"(snapshot|changelog|schema)/\1-([0-9]+)")
_SCHEMA = re.compile(rf"(.+?)(?:/{BRANCHES}/branch-.+?)?/{DOCUMENT}", re.DOTALL)
_NAMED = re.compile(r"(tag|consumer)/\1-(.+)", re.DOTALL)
HINTS = ("snapshot/EARLIEST", "snapshot/LATEST", "changelog/EARLIEST", "changelog/LATEST")
FOLDERS = ("snapshot", "changelog", "schema", "tag", "consumer")
LARGEST = (1 << 63) - 1
"""The highest number that a snapshot can have."""
KEPT_TAG = "firnline-snapshot-"
"""Tags that hold a snapshot below the range of the folder, which a rule of the policy keeps."""
_KEPT = re.compile(rf"{KEPT_TAG}([0-9]+)(?:@[^/]*)?(?:-[0-9a-f]{{12}})?", re.DOTALL)


def branch_folder(branch: str) -> str:
    """Returns the branch's folder below the table's, with a slash at its end; nothing for the main branch."""
    return f"{BRANCHES}/branch-{branch}/" if branch else ""


def split_branch(path: str) -> tuple[str, str]:
    """Returns the branch that a path below the table's folder belongs to, and the path below the branch's folder.

    Paimon lets the name of a branch or tag have slashes, and then makes folders of it: a branch that nobody sees would
    lose its files.
    """
    match = _BRANCH.fullmatch(path)
    if match is None:
        return MAIN, path
    return (match[1], match[2]) if match[1] else (match[3], match[4])


def is_hint(path: str) -> bool:
    """Tells whether a path below the table's folder is that of a hint, of any branch."""
    return split_branch(path)[1] in HINTS


def numbered(path: str) -> tuple[str, int] | None:
    """Returns `snapshot`, `changelog` or `schema` and the number of such a file; None for any other name."""
    match = _NUMBERED.fullmatch(path)
    return (match[1], int(match[2])) if match else None


def named(path: str) -> tuple[str, str] | None:
    """Returns `tag` or `consumer` and the name of such a file."""
    match = _NAMED.fullmatch(path)
    return (match[1], match[2]) if match else None


def known(path: str) -> tuple[str, str] | None:
    """Returns what kind of metadata file a path below a branch's folder is, and its name or number."""
    match = _NUMBERED.fullmatch(path) or _NAMED.fullmatch(path)
    return (match[1], match[2]) if match else None


def is_metadata(path: str) -> bool:
    """Tells whether a path below the table's folder is that of a metadata file, a hint or firnline's own note."""
    below = split_branch(path)[1]
    return not is_dotted(path) and (known(below) is not None or below in HINTS or path == PROPERTIES)


def is_kept_tag(tag: str, number: int) -> bool:
    """Tells whether firnline gave this name to a tag of the snapshot; what only begins so is another writer's."""
    match = _KEPT.fullmatch(tag)
    return match is not None and match[1] == str(number)


def table_of_schema(key: str) -> str | None:
    """Returns the folder of the table whose schema this is, also that of a branch; None where it is no schema."""
    match = _SCHEMA.fullmatch(key)
    return match[1] if match else None


def snapshot_file(branch: str, number: int) -> str:
    return f"{branch_folder(branch)}snapshot/snapshot-{number}"


def changelog_file(branch: str, number: int) -> str:
    return f"{branch_folder(branch)}changelog/changelog-{number}"


def consumer_file(branch: str, name: str) -> str:
    return f"{branch_folder(branch)}consumer/consumer-{name}"


def tag_file(branch: str, name: str) -> str:
    return f"{branch_folder(branch)}tag/tag-{name}"


def snapshot_id(branch: str, number: int, variant: str = "") -> str:
    """Returns the id that firnline gives a snapshot: branches count on their own, so theirs say which branch.

    `variant` is for a tag whose snapshot has a number that was given again since, after a rollback.
    """
    named_id = f"{branch}:{number}" if branch else str(number)
    return f"{named_id}@{quote(variant, safe='')}" if variant else named_id


def branch_of_id(snapshot: str) -> str:
    """Returns the branch that an id of `snapshot_id` names; nothing for the main branch."""
    return snapshot.rpartition(":")[0]
