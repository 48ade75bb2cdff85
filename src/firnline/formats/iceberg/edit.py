"""Changing the metadata as a document: what is not named here survives untouched, known to firnline or not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any

from firnline.errors import RefusedForSafety
from firnline.formats.iceberg import fields
from firnline.formats.iceberg.document import Document
from firnline.model.locations import identity
from firnline.model.snapshots import MAIN, Ref, RefKind
from firnline.ports.formats import Amendment
from firnline.tiers.belonging import is_archive

Entry = Mapping[str, Any]
Taken = Mapping[str, Any]
"""What an expiry took out of a document, as JSON: all that `restored` needs to put it back."""

_BY_SNAPSHOT = ("statistics", "partition-statistics")
CLEARING = "write.metadata.delete-after-commit.enabled"
LOG_LENGTH, DEFAULT_LOG_LENGTH = "write.metadata.previous-versions-max", 100
EXPIRED_PATH = "expired-snapshots-path"
"""The field that is proposed for the history of expired snapshots. Writers that do not know it drop it."""


def expired(document: Document, snapshots: Set[str], refs: Set[str]) -> tuple[dict[str, Any], Taken]:
    """Returns the document without these snapshots and refs, and what was taken out.

    Raises RefusedForSafety where a ref that stays, or the current snapshot, would be left without its snapshot:
    other writers drop such a ref without a word.
    """
    from firnline.formats.iceberg.definitions import IN_USE, in_use

    _refuse_dangling(document, snapshots, refs)
    gone = _member(snapshots)
    edited = dict(document)
    leaving = _pick(document, "snapshots", gone)
    removal: dict[str, Any] = {"snapshots": leaving, IN_USE: in_use(document, leaving)}
    edited["snapshots"] = _drop(document, "snapshots", gone)
    if document.get("refs"):
        removal["refs"] = {name: ref for name, ref in document["refs"].items() if name in refs}
        edited["refs"] = {name: ref for name, ref in document["refs"].items() if name not in refs}
    for name in _BY_SNAPSHOT:
        if document.get(name):
            removal[name] = _pick(document, name, gone)
            edited[name] = _drop(document, name, gone)
    if document.get("snapshot-log") and not _is_of_tier(document):  # a tier's log has gaps
        kept = edited["snapshot-log"] = truncated_log(edited, document["snapshot-log"])
        removal["snapshot-log"] = document["snapshot-log"][: len(document["snapshot-log"]) - len(kept)]
        removal["snapshot-log-next"] = kept[0] if kept else None
    return edited, removal


def _is_of_tier(document: Document) -> bool:
    return is_archive(str(document.get("table-uuid")), document.get("properties") or {})


def restored(document: Document, removal: Taken) -> tuple[dict[str, Any], list[str]]:
    """Returns the document with the removal put back, and the refs that were not.

    A ref that was created since keeps what it says now, whatever it said before; one whose snapshot is gone,
    because something else removed it since, stays away: readers fail on a ref that leads nowhere.
    """
    from firnline.formats.iceberg.definitions import ID_OF

    present = {str(each["snapshot-id"]) for each in document.get("snapshots") or ()}
    edited = dict(document)
    returning = [each for each in removal["snapshots"] if str(each["snapshot-id"]) not in present]
    edited["snapshots"] = [*returning, *(document.get("snapshots") or ())]
    back = _returning_refs(edited, removal)
    if back:
        edited["refs"] = {**back, **(document.get("refs") or {})}
    for name, key in {**dict.fromkeys(_BY_SNAPSHOT, "snapshot-id"), **ID_OF}.items():
        if removal.get(name):
            edited[name] = _with_missing(document.get(name) or [], removal[name], key)
    if _log_goes_on(document, removal):
        edited["snapshot-log"] = truncated_log(
            edited, [*removal["snapshot-log"], *(document.get("snapshot-log") or ())]
        )
    return edited, [name for name in removal.get("refs") or () if name not in back]


def part_of(taken: Taken, snapshots: Set[str]) -> Taken:
    """Returns what of all that was taken out names these snapshots; nothing of the log."""
    lists = {name: entries for name, entries in taken.items() if isinstance(entries, list)}
    kept = {name: [e for e in entries if str(e.get("snapshot-id")) in snapshots] for name, entries in lists.items()}
    return {**kept, "snapshot-log": []}


def _returning_refs(edited: Document, removal: Taken) -> dict[str, Entry]:
    known = {each["snapshot-id"] for each in edited["snapshots"]}
    taken = edited.get("refs") or {}
    wanted = (removal.get("refs") or {}).items()
    return {name: ref for name, ref in wanted if name not in taken and ref["snapshot-id"] in known}


def _log_goes_on(document: Document, removal: Taken) -> bool:
    """Tells whether the log still begins where the removed part ended.

    Where a later expiry cut more of it, putting the older part back would hide a hole: time travel into the hole
    would answer with a snapshot that was not current then.
    """
    log = document.get("snapshot-log") or ()
    return bool(removal.get("snapshot-log")) and (log[0] if log else None) == removal["snapshot-log-next"]


def refuse_reused_ids(document: Document, removal: Taken) -> None:
    """Raises RefusedForSafety if a schema or spec that the run itself took out cannot come back: its id was given
    again.
    """
    from firnline.formats.iceberg.definitions import ID_OF, refuse_other_meaning

    for name in ID_OF:
        for each in removal.get(name) or ():
            refuse_other_meaning(document, name, each)


def amended(document: Document, amendment: Amendment) -> dict[str, Any]:
    """Returns the document with the refs and properties of the amendment, and nothing else changed."""
    edited = dict(document)
    if amendment.refs or amendment.refs_gone:
        edited["refs"] = _refs_with(document, amendment.refs, amendment.refs_gone)
    if amendment.properties or amendment.properties_gone:
        present = document.get("properties") or {}
        kept = {name: value for name, value in present.items() if name not in amendment.properties_gone}
        edited["properties"] = {**kept, **amendment.properties}
    if amendment.expired_path is not None:
        edited[EXPIRED_PATH] = amendment.expired_path
    return edited


def _refs_with(document: Document, refs: Iterable[Ref], gone: Set[str]) -> dict[str, Entry]:
    """Returns the refs with these written and those names gone.

    A document of an older writer names no refs: then main is written too, or a reader would take it for gone.
    """
    present = dict(document.get("refs") or _implied_main(document))
    kept = {name: ref for name, ref in present.items() if name not in gone}
    return {**kept, **{ref.name: _ref_entry(ref, kept.get(ref.name)) for ref in refs}}


def _implied_main(document: Document) -> dict[str, Entry]:
    current = document.get("current-snapshot-id")
    return {} if current in (None, -1) else {MAIN: {"snapshot-id": current, "type": RefKind.BRANCH.value}}


def _ref_entry(ref: Ref, before: Entry | None) -> Entry:
    """Returns the ref as JSON, with what its old entry says beyond what firnline knows."""
    retention = {
        "max-ref-age-ms": ref.max_ref_age_ms,
        "max-snapshot-age-ms": ref.max_snapshot_age_ms,
        "min-snapshots-to-keep": ref.min_snapshots_to_keep,
    }
    unknown = {name: value for name, value in (before or {}).items() if name not in retention}
    said = {name: value for name, value in retention.items() if value is not None}
    return {**unknown, "snapshot-id": int(ref.snapshot), "type": ref.kind.value, **said}


def truncated_log(document: Document, log: Iterable[Entry]) -> list[Entry]:
    """Returns the log from after its last entry whose snapshot is gone.

    Time travel reads this log: an entry before a hole would answer for times at which another snapshot was current.
    """
    known = {each["snapshot-id"] for each in document.get("snapshots") or ()}
    kept: list[Entry] = []
    for entry in log:
        if entry["snapshot-id"] in known:
            kept.append(entry)
        else:
            kept.clear()
    return kept


def stamped(edited: dict[str, Any], base_location: str, now_ms: int) -> dict[str, Any]:
    """Returns the document as the successor of the metadata at `base_location`: log extended, time moved on."""
    before = int(edited.get("last-updated-ms") or 0)
    longest = max(1, _log_length(edited, base_location))
    entry = {"timestamp-ms": before, "metadata-file": base_location}
    log = [*(edited.get("metadata-log") or ()), entry][-longest:]
    return {**edited, "metadata-log": log, "last-updated-ms": max(now_ms, before)}


def clears_metadata(document: Document) -> bool:
    """Returns whether the table asks its writers to delete metadata files that fall off the log."""
    return fields.properties_of(document).get(CLEARING, "false").lower() == "true"


def forgotten_metadata(base: Document, successor: Document) -> list[str]:
    """Returns the metadata files that fell off the log, where the table asks for their removal."""
    if not clears_metadata(base):
        return []
    kept = {identity(entry["metadata-file"]) for entry in successor.get("metadata-log") or ()}
    before = (entry["metadata-file"] for entry in base.get("metadata-log") or ())
    return [key for key in before if identity(key) not in kept]


def _log_length(document: Document, where: str) -> int:
    return fields.property_number(fields.properties_of(document, where), LOG_LENGTH, DEFAULT_LOG_LENGTH, where)


def _refuse_dangling(document: Document, snapshots: Set[str], refs: Set[str]) -> None:
    heads = {
        f"ref {name}": ref["snapshot-id"] for name, ref in (document.get("refs") or {}).items() if name not in refs
    }
    heads["the current snapshot"] = document.get("current-snapshot-id")
    for what, snapshot in heads.items():
        if str(snapshot) in snapshots:
            raise RefusedForSafety(f"{what} needs snapshot {snapshot}, which was to be removed", hint="plan again")


def _member(snapshots: Set[str]) -> Callable[[Entry], bool]:
    return lambda entry: str(entry["snapshot-id"]) in snapshots


def _pick(document: Document, name: str, wanted: Callable[[Entry], bool]) -> list[Entry]:
    return [each for each in document.get(name) or () if wanted(each)]


def _drop(document: Document, name: str, unwanted: Callable[[Entry], bool]) -> list[Entry]:
    return [each for each in document.get(name) or () if not unwanted(each)]


def _with_missing(present: list[Entry], removed: Iterable[Entry], key: str) -> list[Entry]:
    taken = {each[key] for each in present}
    return [*present, *(each for each in removed if each[key] not in taken)]
