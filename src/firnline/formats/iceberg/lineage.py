"""Bridges over the holes that an expiry leaves in a table's history, kept as one table property.

Iceberg's snapshots name their parents and nothing further. When a policy keeps one snapshot a month, the next reading
of the table would find a history that ends at the first hole, and the next run would expire what the policy keeps. A
property survives the commits of every engine, and only firnline reads this one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from firnline.errors import RefusedForSafety
from firnline.formats.iceberg.document import Document
from firnline.model.snapshots import SnapshotId

PROPERTY = "firnline.lineage"


def parse_bridges(properties: Mapping[str, str]) -> dict[SnapshotId, SnapshotId]:
    """Returns the bridges. Raises where they cannot be read: without them rules would keep less than they promise."""
    text = properties.get(PROPERTY)
    if text is None:
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not all(isinstance(older, str) for older in found.values()):
        raise RefusedForSafety(
            f"the table property {PROPERTY} cannot be read: {text[:80]!r}",
            hint="remove the property if the history below its holes may fall under the table's own retention",
        )
    return found


def with_bridges(document: Document, bridges: Mapping[SnapshotId, SnapshotId]) -> dict[str, Any]:
    """Returns the document with these bridges and no others; without any, without the property."""
    present = document.get("properties") or {}
    rest = {name: value for name, value in present.items() if name != PROPERTY}
    said = {PROPERTY: json.dumps(bridges, separators=(",", ":"), sort_keys=True)} if bridges else {}
    if rest == present and not said:
        return dict(document)
    return {**document, "properties": {**rest, **said}}
