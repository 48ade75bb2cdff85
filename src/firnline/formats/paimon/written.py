"""When the files were last written whose age counts: consumers, and tags with an end.

Text first, then time: who moves a consumer, or writes a tag again, between the two makes it younger, and it stays.
"""

from __future__ import annotations

from firnline.errors import ObjectNotFound
from firnline.formats.paimon import names
from firnline.formats.paimon.folder import Files
from firnline.formats.paimon.snapshot import TAG_RETAINED
from firnline.model.locations import join
from firnline.ports.stores import Read


def written_times(store: Read, location: str, files: Files) -> dict[str, int]:
    """Returns when each was last written, by path; none for one whose time the store does not tell."""
    found: dict[str, int] = {}
    for path, text in files.items():
        if _age_counts(path, text):
            try:
                modified = store.head(join(location, path)).modified_ms
            except ObjectNotFound:
                continue
            if modified is not None:
                found[path] = modified
    return found


def _age_counts(path: str, text: str) -> bool:
    known = names.named(names.split_branch(path)[1])
    return known is not None and (known[0] == "consumer" or TAG_RETAINED in text)
