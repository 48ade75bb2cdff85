"""Paths that a table names: each must have one identity, or a file that is needed may look like another's."""

from __future__ import annotations

from firnline.errors import UnsupportedFormat
from firnline.formats.iceberg.fields import damaged, is_text
from firnline.model.locations import is_dotted


def plain_path(path: str, where: str) -> str:
    """Returns the path. Raises UnsupportedFormat, with `where` it is named, for a segment `.` or `..` in it, and
    UnreadableMetadata for half of a character, which JSON can write and no store has in a name.
    """
    if not is_text(path):
        raise damaged(where, f"the path {path!r} has half a character")
    if is_dotted(path):
        problem = dotted(path)
        raise UnsupportedFormat(f"{where}: {problem.message}", hint=problem.hint)
    return path


def dotted(path: str) -> UnsupportedFormat:
    return UnsupportedFormat(
        f"the path {path!r} has a segment '.' or '..'",
        hint="nobody can tell whether it is the same file as another path; nothing was changed",
    )
