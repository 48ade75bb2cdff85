"""A ref that every commit of firnline expects as it read it, so that moving it fences off commits still on their way.

1. A process is frozen just before it sends its commit to a quiet table.
2. Another one sees that its lease ran out, and cancels the run.
3. The first wakes and sends. No ref has moved: the server would apply it.

A pointer can be moved on by a version that changes nothing. A server applies updates to any version, so there must be
something in the table that the commit expects and that we may change: this tag.
"""

from __future__ import annotations

from firnline.catalogs.rest.updates import Document, refs_of
from firnline.model.snapshots import Ref, RefKind
from firnline.model.times import DAY_MS
from firnline.ports.formats import Amendment

FENCE = "firnline-fence"
_LASTS_MS = 7 * DAY_MS


def fence_in(document: Document) -> int | None:
    """Returns the snapshot that the tag names, None where there is no tag."""
    head: int | None = refs_of(document).get(FENCE, {}).get("snapshot-id")
    return head


def moved_fence(document: Document) -> Amendment:
    """Returns the tag on another snapshot than now, the newest possible; gone where there is no other.

    It falls to the table's own retention after a week. A ref's age is that of its snapshot, so that comes on top.
    """
    present = fence_in(document)
    snapshots = sorted(document.get("snapshots") or (), key=lambda each: -int(each["timestamp-ms"]))
    other = next((each for each in snapshots if each["snapshot-id"] != present), None)
    if other is None:
        return Amendment(refs_gone=frozenset({FENCE}))
    age = max(0, int(document["last-updated-ms"]) - int(other["timestamp-ms"]))
    return Amendment(refs=(Ref(FENCE, RefKind.TAG, str(other["snapshot-id"]), age + _LASTS_MS),))
