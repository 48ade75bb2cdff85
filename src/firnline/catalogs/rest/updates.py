"""From two documents to the protocol's updates: what differs is said, or the step is refused.

The server applies updates to whatever metadata it has; it writes the logs and the time by itself. So what a step
changes must be found, update by update, and nothing that cannot be said may be left out without a word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from firnline.errors import RefusedForSafety
from firnline.model.snapshots import MAIN, RefKind

Document = Mapping[str, Any]
Update = dict[str, Any]

_SERVERS_OWN = {"metadata-log", "snapshot-log", "last-updated-ms"}
_REF_FIELDS = ("snapshot-id", "type", "max-ref-age-ms", "max-snapshot-age-ms", "min-snapshots-to-keep")


def updates_of(before: Document, after: Document) -> list[Update]:
    """Returns the updates that make one document the other. Raises RefusedForSafety where no update can say it.

    Refs go before the snapshots they name: a server drops refs to removed snapshots by itself.
    """
    said = [*_refs(before, after)]
    for name, key, update in _REMOVALS:
        gone = _removed(before, after, name, key)
        said += update(gone) if gone else ()
    said += _properties(before, after)
    rest = sorted((before.keys() | after.keys()) - _SERVERS_OWN - _SAID)
    unsaid = [name for name in rest if before.get(name) != after.get(name)]
    if unsaid:
        raise _cannot_say(f"a change of {', '.join(unsaid)}")
    return said


def refs_of(document: Document) -> dict[str, Mapping[str, Any]]:
    """Returns the refs; where a document names none, the current snapshot is the head of main."""
    refs = dict(document.get("refs") or {})
    current = document.get("current-snapshot-id")
    if MAIN not in refs and current not in (None, -1):
        refs[MAIN] = {"snapshot-id": current, "type": RefKind.BRANCH.value}
    return refs


def _refs(before: Document, after: Document) -> Iterator[Update]:
    old, new = refs_of(before), refs_of(after)
    for name in old:
        if name not in new:
            yield {"action": "remove-snapshot-ref", "ref-name": name}
    for name, ref in new.items():
        if ref != old.get(name):
            unknown = ref.keys() - set(_REF_FIELDS)
            if unknown:
                raise _cannot_say(f"{', '.join(sorted(unknown))} of the ref {name}")
            said = {field: ref[field] for field in _REF_FIELDS if ref.get(field) is not None}
            yield {"action": "set-snapshot-ref", "ref-name": name, **said}


def _properties(before: Document, after: Document) -> Iterator[Update]:
    old, new = before.get("properties") or {}, after.get("properties") or {}
    changed = {name: value for name, value in new.items() if old.get(name) != value}
    gone = [name for name in old if name not in new]
    if changed:
        yield {"action": "set-properties", "updates": changed}
    if gone:
        yield {"action": "remove-properties", "removals": gone}


def _removed(before: Document, after: Document, name: str, key: str) -> list[Any]:
    """Returns the ids of entries that are gone. Raises where an entry is new, or says something else."""
    old = {each[key]: each for each in before.get(name) or ()}
    new = {each[key]: each for each in after.get(name) or ()}
    if len(old) != len(before.get(name) or ()) or len(new) != len(after.get(name) or ()):
        raise _cannot_say(f"{name} of which two have the same {key}")
    if any(old.get(each) != entry for each, entry in new.items()):
        raise _cannot_say(f"{name} that are new or changed")
    return [each for each in old if each not in new]


def _one_by_one(action: str) -> Callable[[Sequence[Any]], list[Update]]:
    return lambda gone: [{"action": action, "snapshot-id": each} for each in gone]


def _together(action: str, field: str) -> Callable[[Sequence[Any]], list[Update]]:
    return lambda gone: [{"action": action, field: list(gone)}]


_REMOVALS: tuple[tuple[str, str, Callable[[Sequence[Any]], list[Update]]], ...] = (
    ("statistics", "snapshot-id", _one_by_one("remove-statistics")),
    ("partition-statistics", "snapshot-id", _one_by_one("remove-partition-statistics")),
    ("snapshots", "snapshot-id", _together("remove-snapshots", "snapshot-ids")),
    ("schemas", "schema-id", _together("remove-schemas", "schema-ids")),
    ("partition-specs", "spec-id", _together("remove-partition-specs", "spec-ids")),
)
_SAID = {name for name, _, _ in _REMOVALS} | {"refs", "properties"}


def _cannot_say(what: str) -> RefusedForSafety:
    return RefusedForSafety(
        f"a REST catalog cannot be told {what}", "nothing was changed; such a change needs a catalog with a pointer"
    )


# ---- reading back


def is_true(update: Update, document: Document) -> bool:
    """Tells whether a table already is as the update would make it."""
    match update["action"]:
        case "set-snapshot-ref":
            return _ref_says(refs_of(document).get(update["ref-name"]), update)
        case "remove-snapshot-ref":
            return update["ref-name"] not in refs_of(document)
        case "set-properties":
            present = document.get("properties") or {}
            return all(present.get(name) == value for name, value in update["updates"].items())
        case "remove-properties":
            return not set(update["removals"]) & (document.get("properties") or {}).keys()
        case _:
            return _is_gone(update, document)


def _ref_says(ref: Mapping[str, Any] | None, update: Update) -> bool:
    return ref is not None and all(ref.get(field) == update.get(field) for field in _REF_FIELDS)


def _is_gone(update: Update, document: Document) -> bool:
    gone = _ids(update)
    lists = ((name, key) for name, key, say in _REMOVALS if say([0])[0]["action"] == update["action"])
    return not any(entry[key] in gone for name, key in lists for entry in document.get(name) or ())


def _ids(update: Update) -> set[Any]:
    (said,) = (value for field, value in update.items() if field != "action")
    return set(said) if isinstance(said, list) else {said}
