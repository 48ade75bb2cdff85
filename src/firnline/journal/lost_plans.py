"""Records of runs whose plan is not there: gone, not yet written, or written while they were listed."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence

from firnline.errors import ObjectNotFound, UnreadableMetadata
from firnline.journal.events import FINISHED, EventStore, read_event

_OF_AN_EVENT = re.compile(r"(.*/)events/[^/]*\.json\Z", re.DOTALL)  # a table's own folder may be called `events`, too


def plans_since(store: EventStore, keys: Sequence[str], planned: Container[str]) -> Iterator[str]:
    """Yields each plan that came while its root was listed: `keys` are what was found, in order, `planned` the folders
    with a plan. Raises UnreadableMetadata where a run has not ended, and its plan is gone.

    1. A rule of the bucket removes what is a week old, and a run waits longer: its plan came first, and goes first.
    2. A folder without a plan is no run. The next one purges what this one would bring back.
    3. The plan is restored, as the bucket keeps versions, and the run cannot be undone any more.

    The first event is written before the plan, so that alone is a process that died.
    """
    events = ((found[1], key) for key in keys if (found := _OF_AN_EVENT.match(key)))
    for folder, last in dict(each for each in events if each[0] not in planned).items():
        if last.endswith("/000001.json") or read_event(store, last).state in FINISHED:
            continue
        try:
            store.get(f"{folder}plan.json")
        except ObjectNotFound as lost:
            raise UnreadableMetadata(
                f"the record in {folder} lacks its plan, and the run had not ended",
                hint="restore plan.json; what removes old objects must leave these records alone",
            ) from lost
        yield f"{folder}plan.json"
