"""Committing through a REST catalog: what is required, what is changed, and the fence that shows whether a try landed.

The server applies updates to whatever metadata it has; it writes the logs and the time by itself. So what a step
changes must be found, update by update, and nothing that cannot be said may be left out without a word.

1. A process is frozen just before it sends its commit to a quiet table.
2. Another one sees that its lease ran out, and cancels the run.
3. The first wakes and sends. No ref has moved: the server would apply it.

A pointer can be moved on by a version that changes nothing. A server applies updates to any version, so there must be
something in the table that the commit expects and that we may change: a tag, of which the number is never used twice.
One tag that is moved about would come back to where an earlier commit expects it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from firnline.catalogs.commits import is_named
from firnline.catalogs.rest.catalog import RestCatalog
from firnline.catalogs.rest.http import Reply, Unanswered
from firnline.errors import RefusedForSafety
from firnline.model.snapshots import MAIN, Ref, RefKind
from firnline.model.times import DAY_MS
from firnline.ports.catalogs import Attempt, Step, Still, SwapOutcome, TableName, Version, always
from firnline.ports.formats import Amendment

_OF_SCHEMAS = (
    ("assert-current-schema-id", "current-schema-id", "current-schema-id"),
    ("assert-last-assigned-field-id", "last-assigned-field-id", "last-column-id"),
    ("assert-default-spec-id", "default-spec-id", "default-spec-id"),
    ("assert-last-assigned-partition-id", "last-assigned-partition-id", "last-partition-id"),
)
"""Requirement, its field, and where a document says the same."""


def requirements_of(before: Document, updates: Sequence[Update]) -> list[dict[str, Any]]:
    """Returns the requirements: the same table, and every ref that we know, also those that go, as we read them.

    A ref that we do not know cannot be named here: that race is seen after the commit, see ops.built_on.
    """
    uuid = before.get("table-uuid")
    if not uuid:
        raise RefusedForSafety("the table has no uuid, so a server could not tell it from another", "upgrade the table")
    heads = {name: ref["snapshot-id"] for name, ref in refs_of(before).items()}
    absent = {name: None for name in (*_named(updates), next_fence(before)) if name not in heads}
    said: list[dict[str, Any]] = [{"type": "assert-table-uuid", "uuid": uuid}]
    said += [
        {"type": "assert-ref-snapshot-id", "ref": name, "snapshot-id": head}
        for name, head in {**heads, **absent}.items()
    ]
    return [*said, *_of_schemas(before, updates)]


def _named(updates: Sequence[Update]) -> Iterator[str]:
    return (update["ref-name"] for update in updates if update["action"] == "set-snapshot-ref")


def _of_schemas(before: Document, updates: Sequence[Update]) -> Iterator[dict[str, Any]]:
    """Yields what keeps a schema or spec from being removed that another writer has just begun to use."""
    if any(update["action"] in ("remove-schemas", "remove-partition-specs") for update in updates):
        for kind, field, place in _OF_SCHEMAS:
            if before.get(place) is not None:
                yield {"type": kind, field: before[place]}


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


_CONFLICT = 409
_MISSING = 404
_TIMEOUT = 408


class RestCommits:
    """The write side of a REST catalog. The server chooses where the new metadata lies."""

    def __init__(self, catalog: RestCatalog) -> None:
        self._catalog = catalog

    def prepare(self, table: TableName, step: Step) -> Attempt:
        """Returns the step as updates. Raises RefusedForSafety where the protocol cannot say it."""
        updates = updates_of(step.base.document, step.document)
        requirements = requirements_of(step.base.document, updates)
        proof = {"base": step.base.location, "location": None, "updates": updates, "requirements": requirements}
        return Attempt(table, step, proof)

    def commit(self, attempt: Attempt) -> SwapOutcome:
        """Sends the updates. A server that failed while it had them leaves the outcome unknown.

        Applied twice they change nothing more: what they remove is gone already, what they set is set.
        """
        body = {
            "identifier": {"namespace": list(attempt.table.namespace), "name": attempt.table.name},
            "requirements": attempt.proof["requirements"],
            "updates": attempt.proof["updates"],
        }
        try:
            reply = self._catalog.http.post(self._catalog.address(attempt.table), body)
        except Unanswered:
            return SwapOutcome.UNKNOWN
        if reply.is_good:  # without the table in it, as it shall be, nobody knows who answered: it is read again
            return SwapOutcome.DONE if _tells(reply, attempt.proof) else SwapOutcome.UNKNOWN
        if reply.status == _CONFLICT:
            return SwapOutcome.LOST
        if reply.status >= 500 or reply.status == _TIMEOUT:  # also a proxy's own words, after it has sent ours on
            return SwapOutcome.UNKNOWN
        if reply.status == _MISSING:
            raise self._catalog.missing(attempt.table)
        raise self._catalog.refused(reply, f"a commit to {attempt.table}")

    def landed(self, proof: Mapping[str, Any], now: Version, still: Still = always) -> bool:
        """Tells whether the table is as the updates make it; by whichever request, there is nothing left to do.

        An attempt may also have moved a pointer: a server's own database can be used as a catalog too.
        """
        if "updates" not in proof:
            return is_named(proof["location"], now)
        return all(is_true(update, now.document) for update in proof["updates"])

    def fence(self, proofs: Sequence[Mapping[str, Any]], now: Version) -> Amendment | None:
        """Returns the tags that these attempts expect to be absent; for one that moves a pointer, any that is new."""
        names = (_fence_of(proof) or next_fence(now.document) for proof in proofs if _may_land(proof, now))
        return fences(names, now.document)


def _tells(reply: Reply, proof: Mapping[str, Any]) -> bool:
    """Tells whether a good answer has the table in it, as the updates make it: the protocol sends it back. A gateway's
    page, another table or one as it was before tells of no commit.
    """
    told: Any = reply.body.get("metadata")
    try:
        whose = {"type": "assert-table-uuid", "uuid": told["table-uuid"]}
        return whose in proof["requirements"] and all(is_true(update, told) for update in proof["updates"])
    except (KeyError, TypeError, ValueError, AttributeError):  # it is called metadata, and is none
        return False


def _may_land(proof: Mapping[str, Any], now: Version) -> bool:
    """Tells whether the tag is absent, or the pointer still is where this attempt expects it."""
    name = _fence_of(proof)
    return bool(proof["base"] == now.location) if name is None else name not in refs_of(now.document)


def _fence_of(proof: Mapping[str, Any]) -> str | None:
    """Returns the tag that the attempt expects to be absent; None where it moves a pointer and expects none."""
    expected = proof.get("requirements", ())
    absent = (str(each["ref"]) for each in expected if is_fence(each.get("ref", "")) and each["snapshot-id"] is None)
    return next(absent, None)
