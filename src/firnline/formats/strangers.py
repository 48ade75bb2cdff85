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
    "Icechunk": r"(?:refs/branch\.[^/]+/ref\.json|snapshots/[0-9A-HJKMNP-TV-Z]{20})",
}
STRANGE_NAMES = tuple((expression, FileKind.METADATA) for expression in STRANGERS.values())


def refuse_stranger(key: str) -> None:
    """Raises UnsupportedFormat where the name is that of such a format's metadata."""
    for name, expression in STRANGERS.items():
        if re.search(f"/{expression}$", key):
            raise UnsupportedFormat(
                f"{key} belongs to a table of {name}, which this version cannot read",
                "what it needs is not known, so nothing in that folder goes; give the table a folder of its own",
            )
