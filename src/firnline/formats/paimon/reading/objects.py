"""Paimon's snapshots as Iceberg writes a Snapshot: what a table's history remembers, and what SQL shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from firnline.formats.paimon import names
from firnline.formats.paimon.reading import fields
from firnline.formats.paimon.reading.branches import SnapshotVersion, branches_of, versions_of
from firnline.formats.paimon.reading.ranges import held_in
from firnline.formats.paimon.reading.snapshot import TAG_CREATED, TAG_RETAINED
from firnline.formats.paimon.reading.state import files_in
from firnline.model.locations import join
from firnline.ports.formats import State

_OF_TAGS = (TAG_CREATED, TAG_RETAINED)
_TOLD = ("id", "timeMillis", "commitKind")
"""What stands outside of the summary."""


def snapshot_objects(state: State) -> Iterator[Mapping[str, Any]]:
    """Yields every version of every branch. Ids of other branches than the main one are no numbers."""
    for branch in branches_of(files_in(state), state.location).values():
        for version in versions_of(branch).values():
            yield _object(state, version)


def _object(state: State, version: SnapshotVersion) -> Mapping[str, Any]:
    """Returns a snapshot. Its parent has the number before, whether it is still there or not. The delta list stands for
    the manifest list: it is the one that no other snapshot has.

    `paimon` is the snapshot as its writer wrote it, with whatever fields nobody knows.
    """
    path, number = held_in(version), version.snapshot.number
    said = fields.parse(files_in(state)[path], join(state.location, path))
    written = {field: value for field, value in said.items() if field not in _OF_TAGS}
    before = {"parent-snapshot-id": _id(names.snapshot_id(version.branch, number - 1))} if number > 1 else {}
    return {
        "snapshot-id": _id(version.id),
        **before,
        "timestamp-ms": version.snapshot.time_ms,
        "summary": _summary(version, written),
        "manifest-list": join(state.location, "manifest", version.snapshot.delta.name),
        "schema-id": written.get("schemaId"),
        "paimon": written,
    }


def _id(snapshot: str) -> int | str:
    return int(snapshot) if snapshot.isdigit() else snapshot


def _summary(version: SnapshotVersion, written: Mapping[str, Any]) -> dict[str, str]:
    """Returns the operation and the counts of records by Iceberg's names, and all plain fields by Paimon's own."""
    plain = {name: value for name, value in written.items() if _is_plain(value) and name not in _TOLD}
    of_branch = {"branch": version.branch} if version.branch else {}
    return {
        "operation": version.snapshot.kind.lower(),
        **_records(written),
        **of_branch,
        **{name: str(value) for name, value in plain.items()},
    }


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _records(written: Mapping[str, Any]) -> dict[str, str]:
    """Returns how many records there are and came or went. A snapshot says the balance alone: a change of as many
    records as it removes says nothing.
    """
    total, balance = written.get("totalRecordCount"), written.get("deltaRecordCount")
    found = {"total-records": str(total)} if isinstance(total, int) else {}
    if isinstance(balance, int) and balance:
        found["added-records" if balance > 0 else "deleted-records"] = str(abs(balance))
    return found
