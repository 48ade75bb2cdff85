"""What a commit was really built on, and whether a ref got lost with it.

A server that applies updates builds them on whatever it has then. Between our reading and its commit another writer may
have tagged a snapshot that we remove; the server drops such a tag without a word. Only the version before the commit,
which the log of the new one names, can tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from shlex import quote
from typing import Any

from firnline.errors import ObjectNotFound, RefusedForSafety, UnreadableMetadata
from firnline.journal.runs import Run
from firnline.model.removals import Removal
from firnline.ports.abilities import KeepsVersions
from firnline.ports.catalogs import TableSource
from firnline.ports.formats import State


@dataclass(frozen=True, slots=True)
class _Landed:
    """The version that the commit made, and the one before it."""

    before: State
    after: State


def what_landed(source: TableSource, state: State, detail: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what the run's record says of its commit: where it lies, what it was built on, which refs got lost.

    `refs_unseen` where nobody can tell any more: the commit may have dropped a ref, and the versions that would show
    it are gone. A commit whose new metadata we named ourselves cannot: it was a compare-and-swap on what we read. Nor
    can one that takes files away: it names each, and no other version of the table is anywhere to be read. Nor can one
    that takes out neither a snapshot nor a ref, such as one that only forgets: a server drops the refs of what goes.
    """
    removal = Removal.from_json(detail["removal"])
    found = _find(source, state, detail) if isinstance(source.format, KeepsVersions) else None
    if found is None:
        unseen = detail["location"] is None and bool(removal.ids or removal.refs)
        return {"lost_refs": [], "refs_unseen": unseen, "built_on": None}
    lost = sorted(set(found.before.refs) - set(found.after.refs) - removal.refs.keys())
    return {
        "location": found.after.fence,
        "built_on": found.before.fence,
        "lost_refs": lost,
        "refs_unseen": False,
    }


def keeps_all_files(run: Run) -> bool:
    """Tells whether a run must never purge: its commit lost a ref, or may have."""
    said = run.committed.detail if run.committed else {}
    return bool(said.get("lost_refs") or said.get("refs_unseen"))


def refuse_lost_refs(run: Run, undoable: bool) -> None:
    """Raises for good where the commit itself lost refs, or may have: every file of the run stays."""
    if run.committed is None or not keeps_all_files(run):
        return
    said = run.committed.detail
    lost = ", ".join(said["lost_refs"])
    what = f"lost refs that nobody removed: {lost}" if lost else "may have lost a ref, and nobody can tell any more"
    raise RefusedForSafety(f"the commit of {run.id} {what}; nothing is purged", hint=_way_back(run, said, undoable))


def _way_back(run: Run, said: Mapping[str, Any], undoable: bool) -> str:
    if undoable:
        return f"`firnline undo {quote(str(run.id))}` brings their snapshots back"
    if said.get("built_on"):
        return (
            f"every file is still there and {said['built_on']} still names them: "
            "register it as another table, and copy from there what the refs named"
        )
    return "every file of the run stays, also for later runs"


def _find(source: TableSource, state: State, detail: Mapping[str, Any]) -> _Landed | None:
    """Returns the versions after and before the commit; None where the log, or what it names, ends too soon."""
    try:
        return _by_location(source, state, detail) if detail["location"] else _by_effect(source, state, detail)
    except (UnreadableMetadata, ObjectNotFound):
        return None  # old metadata was cleaned up


def _by_location(source: TableSource, state: State, detail: Mapping[str, Any]) -> _Landed | None:
    after = state if state.fence == detail["location"] else _read(source, detail["location"])
    before = next(_earlier(source, after), None)
    return None if before is None else _Landed(before, after)


def _by_effect(source: TableSource, state: State, detail: Mapping[str, Any]) -> _Landed | None:
    """Returns the newest version without anything that the commit took out, after one that still had some of it."""
    after, removal = state, Removal.from_json(detail["removal"])
    for before in _earlier(source, state):
        if _has_some(before, removal) and not _has_some(after, removal):
            return _Landed(before, after)
        if before.fence == detail["base"]:
            return None
        after = before
    return None


def _has_some(state: State, removal: Removal) -> bool:
    return any(each in state.graph for each in removal.ids) or any(name in state.refs for name in removal.refs)


def _earlier(source: TableSource, state: State) -> Iterator[State]:
    """Yields the versions before this one, newest first, each read when it is asked for; none where none is kept."""
    table_format = source.format
    log = table_format.versions(state)[:-1] if isinstance(table_format, KeepsVersions) else ()
    return (_read(source, place) for place, _ in reversed(log))


def _read(source: TableSource, place: str) -> State:
    return source.format.load(str(source.name), place)
