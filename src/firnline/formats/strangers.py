"""What the metadata of formats looks like that nobody can read here: noticed by name, so that a search stops before
such a table's data is taken for garbage.
"""

from __future__ import annotations

import re

from firnline.errors import UnsupportedFormat
from firnline.model.files import FileKind

STRANGERS = {
    "Delta Lake": r"_delta_log/(?:_last_checkpoint|[0-9]{20}\.(?:json|checkpoint\.[^/]+))",
    "Apache Hudi": r"\.hoodie/hoodie\.properties",
}
_SNAPSHOT = r"snapshots/[0-9A-HJKMNP-TV-Z]{20}"
"""Of Icechunk. Its refs tell what is needed: where they are gone, only snapshots are left to be noticed."""
STRANGE_NAMES = tuple((expression, FileKind.METADATA) for expression in (*STRANGERS.values(), _SNAPSHOT))


def refuse_stranger(key: str) -> None:
    """Raises UnsupportedFormat where the name is that of such a format's metadata, or of a snapshot by itself."""
    if re.search(f"/{_SNAPSHOT}$", key):
        raise UnsupportedFormat(
            f"{key} is a snapshot of Icechunk, and only the refs of its repository tell what is needed",
            "if they are there, --also LOCATION names the repository; without them nothing in that folder goes",
        )
    for name, expression in STRANGERS.items():
        if re.search(f"/{expression}$", key):
            raise UnsupportedFormat(
                f"{key} belongs to a table of {name}, which this version cannot read",
                "what it needs is not known, so nothing in that folder goes; give the table a folder of its own",
            )
