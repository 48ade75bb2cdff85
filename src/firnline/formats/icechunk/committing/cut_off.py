"""Commits that a branch got in the very moment in which it was deleted: no ref leads to them, and their writers were
told that they are there.
"""

from __future__ import annotations

from collections.abc import Iterator

from firnline.errors import UnreadableMetadata
from firnline.formats.icechunk import names
from firnline.formats.icechunk.committing.proofs import ExpiryProof
from firnline.formats.icechunk.expiring.ancestry import RefHistory
from firnline.formats.icechunk.reading.history import HistorySnapshot
from firnline.formats.icechunk.reading.objects import lineage_at
from firnline.formats.icechunk.reading.repository import IcechunkRepository
from firnline.model.locations import join
from firnline.model.snapshots import RefKind
from firnline.ports.stores import Read

_MARGIN_MS = 60_000
"""A snapshot is written before its branch is moved to it."""


def written_on_top(store: Read, now: IcechunkRepository, proof: ExpiryProof, begun_ms: int) -> list[str]:
    """Returns the snapshots right after those of deleted branches that the plan did not know and no ref leads to.

    Version 2 lists what was committed. On version 1 a commit that its writer knows to have failed looks the same, so
    only those count that are no older than the commit of ours, by the store's clock.
    """
    tips = {ref.snapshot for ref in proof.delete if ref.kind is RefKind.BRANCH}
    if not tips:
        return []
    known = RefHistory.of(now).reachable() | proof.gone | proof.parents.keys()
    candidates = now.snapshots.values() if now.spec > 1 else _unread(store, now, begun_ms - _MARGIN_MS)
    return sorted(each.id for each in candidates if each.id not in known and each.parent in tips)


def _unread(store: Read, now: IcechunkRepository, since_ms: int) -> Iterator[HistorySnapshot]:
    """Yields the young snapshots of version 1 that no ref leads to; not what cannot be read, or is gone by now."""
    for each in store.list(join(now.location, names.SNAPSHOTS)):
        name = each.key.rpartition("/")[2]
        if names.is_object_name(name) and name not in now.snapshots and (each.modified_ms or since_ms) >= since_ms:
            try:
                yield lineage_at(store, now.location, name)
            except UnreadableMetadata:
                continue
