"""The metadata of a tier's table: the snapshots that a live table handed over, and whatever is needed to read them.

It is a table of its own, with a uuid that follows from the live one's, in which nothing is ever changed or taken out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from itertools import pairwise
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from firnline.formats.iceberg import fields
from firnline.formats.iceberg.definitions import ID_OF, IN_USE, in_use, refuse_other_meaning
from firnline.formats.iceberg.document import Document
from firnline.formats.iceberg.edit import EXPIRED_PATH, stamped
from firnline.model.snapshots import MAIN, RefKind
from firnline.ports.formats import State
from firnline.ports.relocating import Place
from firnline.tiers.belonging import ARCHIVE_IN, ARCHIVE_OF, history_of

Entry = Mapping[str, Any]
_PATHS = {"statistics": "statistics-path", "partition-statistics": "statistics-path"}
_UNSORTED: Entry = {"order-id": 0, "fields": []}
_SKEW_MS = 60_000
_NEVER_LESS = ("format-version", "last-sequence-number", "next-row-id", "last-column-id", "last-partition-id")
_OF_LIVE = ("firnline.", "write.data.", "write.metadata.path", "write.object-storage.", "write.folder-storage.",
            "write.metadata.delete-after-commit.", "history.expire.")  # fmt: skip
"""Properties that say where and how the live table is written and cleaned: none of that holds for the tier's."""


def uuid_in_tier(uuid: str, root: str) -> str:
    """Returns the uuid of the table that holds another one's history: the same whenever it is asked for."""
    return str(uuid5(NAMESPACE_URL, f"{root}#{uuid}"))


def archived(
    state: State, snapshots: Set[str], tags: Set[str], place: Place, into: State | None, now_ms: int
) -> dict[str, Any]:
    """Returns the tier's next document. Raises RefusedForSafety where one of the definitions that the tier has means
    something else in the live table.
    """
    live, cold = state.document, None if into is None else into.document
    present = _by_id((cold or {}).get("snapshots") or ())
    coming = [each for each in live.get("snapshots") or () if str(each["snapshot-id"]) in snapshots - present.keys()]
    kept = sorted([*present.values(), *(_placed(each, place, state.fence) for each in coming)], key=_by_age)
    there = snapshots | present.keys()
    log = _log(state, cold, there)
    current = next((i for each in reversed(log) if str(i := each["snapshot-id"]) in there), kept[-1]["snapshot-id"])
    uuid = uuid_in_tier(state.uuid, place.place(state.location)) if into is None else into.uuid
    document = {
        **{name: value for name, value in live.items() if name != EXPIRED_PATH},
        **_definitions(live, cold),
        **_largest(live, cold),
        "table-uuid": uuid,
        "location": place.place(state.location),
        "properties": _properties(state, into, uuid),
        "snapshots": kept,
        "snapshot-log": log,
        "current-snapshot-id": current,
        "refs": _refs(state, cold, current, tags, {str(each["snapshot-id"]) for each in kept}),
        "metadata-log": list((cold or {}).get("metadata-log") or ()),
        "last-updated-ms": max(now_ms, *(int(each["timestamp-ms"]) for each in (*kept, *log))),
        **{name: _statistics(name, live, cold, snapshots, place) for name in _PATHS},
    }
    return document if into is None else _following(document, into, now_ms)


def returning(there: State, snapshot: str, place: Place) -> dict[str, Any]:
    """Returns a snapshot of a tier's table as an expiry would have taken it out of the live one."""
    document = there.document
    entry = next(each for each in document["snapshots"] if str(each["snapshot-id"]) == snapshot)
    found: dict[str, Any] = {"snapshots": [_placed(entry, place, there.fence)], IN_USE: in_use(document, [entry])}
    for name in _PATHS:
        found[name] = _statistics(name, document, None, {snapshot}, place)
    return found


def _following(document: dict[str, Any], into: State, now_ms: int) -> dict[str, Any]:
    before = {**document, "last-updated-ms": into.document.get("last-updated-ms")}
    return {**stamped(before, into.fence, now_ms), "last-updated-ms": document["last-updated-ms"]}


def _by_id(entries: Iterable[Entry]) -> dict[str, Entry]:
    return {str(each["snapshot-id"]): each for each in entries}


def _by_age(snapshot: Entry) -> tuple[int, int]:
    """Snapshots of version 1 have no numbers: their times stand for them."""
    return int(snapshot.get("sequence-number") or 0), int(snapshot["timestamp-ms"])


def _placed(snapshot: Entry, place: Place, where: str) -> Entry:
    if snapshot.get("manifest-list") is not None:
        return {**snapshot, "manifest-list": place.place(fields.text(snapshot, "manifest-list", where))}
    return {**snapshot, "manifests": [place.place(each) for each in snapshot.get("manifests") or ()]}


def _log(state: State, cold: Document | None, there: Set[str]) -> list[Entry]:
    """Returns when each snapshot became the current one, until the last that the tier has, and whatever else did so by
    then: of several entries of one time the last one counts. Of a table without any log, main's own snapshots became it
    when they were made.

    Snapshots that the tier does not have stay in it: a reader who asks for their time fails. Without them it would get
    the rows of an earlier snapshot.
    """
    before, now = ((each or {}).get("snapshot-log") or () for each in (cold, state.document))
    known = {_moment(each) for each in before}
    log = _in_order([*before, *(each for each in now if _moment(each) not in known)]) or _made(state)
    return log[: _end(log, there)]


def _end(log: list[Entry], there: Set[str]) -> int:
    """Returns up to where the log is told: the last entry that the tier has, and on until all entries of the times by
    then are told, for clocks may go back.
    """
    times = [int(each["timestamp-ms"]) for each in log]
    end, further = 0, max((at for at, each in enumerate(log, start=1) if str(each["snapshot-id"]) in there), default=0)
    while further > end:
        end, latest = further, max(times[:further])
        further = max(at for at, time in enumerate(times, start=1) if time <= latest)
    return end


def _moment(entry: Entry) -> tuple[int, int]:
    return int(entry["timestamp-ms"]), int(entry["snapshot-id"])


def _made(state: State) -> list[Entry]:
    main = state.refs.get(MAIN)
    own = state.graph.history(main.snapshot) if main else ()
    made = sorted((each.timestamp_ms, int(each.id)) for each in own)
    return [{"timestamp-ms": at, "snapshot-id": snapshot} for at, snapshot in made]


def _in_order(log: list[Entry]) -> list[Entry]:
    """Returns the log as it is, where writers' clocks explain its order: the later of two entries counts. Java reads no
    table whose log goes back by more.
    """
    back = any(int(one["timestamp-ms"]) - int(other["timestamp-ms"]) > _SKEW_MS for one, other in pairwise(log))
    return sorted(log, key=lambda entry: int(entry["timestamp-ms"])) if back else log


def _refs(state: State, cold: Document | None, current: int, tags: Set[str], there: Set[str]) -> dict[str, Entry]:
    """Returns `main`, the tags that are there already, and those that come. A name that is taken by another snapshot
    stays with it: the one that comes gets its snapshot's id after the name.
    """
    found = {name: ref for name, ref in ((cold or {}).get("refs") or {}).items() if name != MAIN}
    for name in sorted(tags):
        ref = state.refs[name]
        taken = name == MAIN or (name in found and str(found[name]["snapshot-id"]) != ref.snapshot)
        if ref.snapshot in there:
            called = f"{name}-{ref.snapshot}" if taken else name
            found[called] = {"snapshot-id": int(ref.snapshot), "type": RefKind.TAG.value}
    return {MAIN: {"snapshot-id": current, "type": RefKind.BRANCH.value}, **found}


def _statistics(name: str, live: Document, cold: Document | None, snapshots: Set[str], place: Place) -> list[Entry]:
    kept = list((cold or {}).get(name) or ())
    there, path = {str(each["snapshot-id"]) for each in kept}, _PATHS[name]
    coming = (each for each in live.get(name) or () if str(each["snapshot-id"]) in snapshots - there)
    return [*kept, *({**each, path: place.place(each[path])} for each in coming)]


def _properties(state: State, into: State | None, uuid: str) -> dict[str, str]:
    own = {name: value for name, value in state.properties.items() if not name.startswith(_OF_LIVE)}
    before = {} if into is None else into.properties
    belonging = {ARCHIVE_OF: history_of(state.uuid, state.properties), ARCHIVE_IN: uuid}
    return {**before, **own, "gc.enabled": "false", **belonging}


def _definitions(live: Document, cold: Document | None) -> dict[str, Any]:
    """Returns all schemas, specs and orders that either has. Nothing in a tier is sorted: no default order has to find
    its columns.
    """
    found: dict[str, Any] = {}
    for name, key in ID_OF.items():
        for each in (cold or {}).get(name) or ():
            refuse_other_meaning(live, name, each)
        both = _united(live.get(name), (cold or {}).get(name), key)
        found |= {name: both} if both else {}
    orders = _united(live.get("sort-orders"), (cold or {}).get("sort-orders"), "order-id")
    unsorted = [] if any(each.get("order-id") == 0 for each in orders) else [_UNSORTED]
    return {**found, "sort-orders": [*unsorted, *orders], "default-sort-order-id": 0}


def _largest(live: Document, cold: Document | None) -> dict[str, int]:
    """Returns the numbers that Java checks what is there by. Those of live are lower once it was registered again from
    older metadata.
    """
    said = {name: [each[name] for each in (live, cold or {}) if each.get(name) is not None] for name in _NEVER_LESS}
    return {name: max(numbers) for name, numbers in said.items() if numbers}


def _united(first: Any, second: Any, key: str) -> list[Entry]:
    mine = list(first or ())
    known = {each.get(key) for each in mine}
    return [*mine, *(each for each in second or () if each.get(key) not in known)]
