"""Everything that a table needs, or may need again: where every look for files that nobody needs starts from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote

from firnline.errors import RefusedForSafety
from firnline.journal.runs import Run
from firnline.model.files import File, FileKind, Root
from firnline.model.removals import Removal
from firnline.ops.reachability.pointed import pointed_versions, roots_beyond
from firnline.ops.table.context import TableContext
from firnline.ops.table.sources import mirrored
from firnline.policy.holds import unreadable
from firnline.ports.abilities import PointedVersion
from firnline.ports.formats import State, TableFormat
from firnline.tiers.belonging import is_archive


def live_roots(
    work: TableContext,
    state: State,
    now_ms: int,
    but: str | None = None,
    pointed: Sequence[PointedVersion] | None = None,
    finished: dict[str, Run] | None = None,
) -> Iterator[Root]:
    """Yields the roots of all snapshots on all branches and tags, staged ones too, the metadata that the table or its
    pointers name, and what undoable runs or holds may bring back; `but` is the stamp of a run that does not count.
    `pointed` is what the pointers lead to, where that was read a moment ago, and `finished` remembers runs that are.
    """
    _refuse_unreadable_hold(state)
    table_format = work.source.format
    present = _by_owner(table_format, state)
    yield from (Root(file, True, owner) for owner, files in present.items() for file in files)
    versions = pointed_versions(table_format, state) if pointed is None else pointed
    metadata = (*table_format.metadata_files(state), *work.source.passed(state.fence))
    named = (*metadata, *(each.pointer.metadata for each in versions))
    yield from (Root(File(FileKind.METADATA, name), True) for name in named)
    yield from roots_beyond(versions, {file for files in present.values() for file in files})
    for number, (_, removal) in enumerate(may_come_back(work, state, now_ms, but, finished)):
        revived = _by_owner(table_format, table_format.with_removal(state, removal))
        changed = {owner: files for owner, files in revived.items() if present.get(owner) != files}
        yield from (Root(file, True, f"{owner} in {number}") for owner, files in changed.items() for file in files)


def _refuse_unreadable_hold(state: State) -> None:
    """Raises RefusedForSafety if a hold cannot be read: it may name a snapshot that a run took out, and then its files
    are needed by something that no walk starts from.
    """
    reason = unreadable(state.holds)
    if reason:
        raise RefusedForSafety(
            f"nobody can tell what {state.table} needs: {reason}",
            hint=f"`firnline hold list {quote(state.table)}` shows it; correct the property, or release the hold",
        )


def _by_owner(table_format: TableFormat, state: State) -> dict[str, list[File]]:
    """Returns the roots of each owner. After a rollback two versions of a table may each have an owner of one name:
    what the one takes away must not count against the other.
    """
    found: dict[str, list[File]] = {}
    for owner, file in table_format.roots(state):
        found.setdefault(owner, []).append(file)
    return found


def may_come_back(
    work: TableContext,
    state: State,
    now_ms: int,
    but: str | None = None,
    finished: dict[str, Run] | None = None,
) -> Iterator[tuple[Run, Removal]]:
    """Yields what other undoable runs took out, and what of any run's removal a hold names: also of runs that are
    done, since the files of a held snapshot outlive the run that took it out.
    """
    held = {hold.snapshot for hold in state.holds if hold.snapshot is not None and hold.in_force(now_ms)}
    for each in work.recorded(state, but=None if held else but, finished=finished):
        if each.id.stamp != but:
            yield from ((each, removal) for removal in each.removals)
        for event in each.attempts if held else ():
            removal = event.removal
            yield each, work.source.format.part_of(removal, held & set(removal.ids))


def forbidden(state: State, now_ms: int, *, handed_on: bool = False) -> str | None:
    """Returns why nothing of the table may be removed now, or None. `handed_on`: what a run takes out of it goes to a
    tier; otherwise a tier's own table loses nothing.
    """
    held = [hold.name for hold in state.holds if hold.snapshot is None and hold.in_force(now_ms)]
    kept = (
        None if handed_on or not is_archive(state.uuid, state.properties) else "it keeps the history of another table"
    )
    return (
        state.forbidden
        or kept
        or mirrored(state)
        or (f"the hold {held[0]} on the whole table is in force" if held else None)
    )
