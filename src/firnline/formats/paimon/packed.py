"""Changelogs of several buckets in one file, as Flink writes them with `changelog.precommit-compact`.

The file lies in the bucket of the first, under `compacted-changelog-UUID$BUCKET-LENGTH.cc-FORMAT`. Entries of the
others name it in their own bucket, with the place of their part behind: `…$BUCKET-LENGTH-OFFSET-PART.cc-FORMAT`. There
is no file of that name. What an entry says of its size is that of its part.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_PREFIX = "compacted-changelog-"
_PART = rf"^(.*/)?bucket-[^/]+/({_PREFIX}[^/.$]*\$)([0-9]+)-([0-9]+)-[0-9]+-[0-9]+(\.[^/]*)$"
_WHOLE = r"\1bucket-\3/\2\3-\4\5"


def is_packed(names: pa.Array) -> pa.Array:
    """Tells of each name whether it is that of such a file, or of a part of one."""
    return pc.starts_with(names, _PREFIX)


def unpacked(keys: pa.Array) -> pa.Array:
    """Returns the paths with that of the whole file for each part; all others as they are."""
    if not pc.any(pc.match_substring(keys, _PREFIX)).as_py():
        return keys
    return pc.replace_substring_regex(keys, pattern=_PART, replacement=_WHOLE)
