"""Refs that a commit of firnline expects to be absent, so that making one fences off commits still on their way.

1. A process is frozen just before it sends its commit to a quiet table.
2. Another one sees that its lease ran out, and cancels the run.
3. The first wakes and sends. No ref has moved: the server would apply it.

A pointer can be moved on by a version that changes nothing. A server applies updates to any version, so there must be
something in the table that the commit expects and that we may change: a tag, of which the number is never used twice.
One tag that is moved about would come back to where an earlier commit expects it.
"""

from __future__ import annotations

from collections.abc import Iterable

from firnline.catalogs.rest.updates import Document, refs_of
from firnline.model.snapshots import MAIN, Ref, RefKind
from firnline.model.times import DAY_MS
from firnline.ports.formats import Amendment

FENCE = "firnline-fence-"
"""How the tags begin; a number follows."""

_LASTS_MS = 7 * DAY_MS


def next_fence(document: Document) -> str:
    """Returns the tag that fences off whatever is made from this document: the one after the last that is there."""
    used = [int(name.removeprefix(FENCE)) for name in refs_of(document) if is_fence(name)]
    return f"{FENCE}{max(used, default=0) + 1}"


def is_fence(name: str) -> bool:
    return name.startswith(FENCE) and name.removeprefix(FENCE).isdecimal()


def fences(names: Iterable[str], document: Document) -> Amendment | None:
    """Returns these tags, as far as they are not there, on a snapshot that stays anyway: the head of main where there
    is one. None where nothing is missing; or where the table has no snapshot, so that nothing can be removed from it.

    On another snapshot a tag would keep what the run is about to expire. They fall to the table's own retention after a
    week. A ref's age is that of its snapshot, so that comes on top.
    """
    missing, place = sorted(set(names) - refs_of(document).keys()), _place(document)
    if not missing or place is None:
        return None
    age = max(0, int(document["last-updated-ms"]) - int(place["timestamp-ms"]))
    snapshot = str(place["snapshot-id"])
    return Amendment(refs=tuple(Ref(name, RefKind.TAG, snapshot, age + _LASTS_MS) for name in missing))


def _place(document: Document) -> Document | None:
    """Returns the head of main, else the newest snapshot that a ref names, else the newest of all."""
    refs = refs_of(document)
    heads = {ref["snapshot-id"] for ref in refs.values()}
    main = refs.get(MAIN, {}).get("snapshot-id")

    def rank(each: Document) -> tuple[bool, bool, int]:
        return each["snapshot-id"] == main, each["snapshot-id"] in heads, int(each["timestamp-ms"])

    return max(document.get("snapshots") or (), key=rank, default=None)
