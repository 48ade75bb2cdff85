"""Transaction logs that cannot be read. No walk opens one, since it names no object; rebases of writers and the
library's comparisons of snapshots do.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from firnline.errors import ObjectNotFound, UnreadableMetadata, UnsupportedFormat
from firnline.formats.icechunk.reading.objects import refuse_unreadable_log
from firnline.formats.icechunk.reading.refs import side_by_side
from firnline.formats.icechunk.reading.repository import IcechunkRepository
from firnline.formats.icechunk.walking.roots import roots_of
from firnline.model.files import FileKind
from firnline.ports.stores import Get


def unreadable_logs(store: Get, repository: IcechunkRepository) -> Iterator[tuple[str, str]]:
    """Yields the logs that the history needs and that are there, but cannot be read, each with the reason. Each is
    fetched and let go again: memory holds a few at a time.
    """
    files = (file for _, file in roots_of(repository))
    keys = sorted({file.key for file in files if file.kind is FileKind.TRANSACTION_LOG})
    problems = side_by_side(partial(_problem, store, repository.location), keys)
    yield from ((key, why) for key, why in zip(keys, problems, strict=True) if why is not None)


def _problem(store: Get, location: str, key: str) -> str | None:
    """Returns what is wrong with a log; None for one that is not there: a look at all needed files tells of it."""
    try:
        refuse_unreadable_log(store, location, key.rpartition("/")[2])
    except (UnreadableMetadata, UnsupportedFormat) as problem:
        cause = problem.__cause__
        return None if isinstance(cause, ObjectNotFound) else f"cannot be read: {cause or problem}"
    return None
