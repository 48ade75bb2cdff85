"""Edits of a repository: refs and history as a commit is to leave them, and what it takes out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import replace
from typing import Any

from firnline.errors import RefusedForSafety, UnsupportedFormat, UsageError
from firnline.formats.icechunk.expiring.ancestry import RefHistory, survivors_since
from firnline.formats.icechunk.expiring.fitting import manner_of, parts_of
from firnline.formats.icechunk.expiring.loose_ends import without_followers
from firnline.formats.icechunk.expiring.rewriting import Rewriting, rewritten
from firnline.formats.icechunk.names import is_seen_tag
from firnline.formats.icechunk.objects import snapshot_object
from firnline.formats.icechunk.reading.history import HistorySnapshot
from firnline.formats.icechunk.reading.repository import IcechunkRepository
from firnline.formats.icechunk.state import notes_in, ref_in, repository_in, state_of
from firnline.formats.icechunk.versions import version_name
from firnline.model.removals import Removal
from firnline.model.snapshots import MAIN, Ref, RefKind, SnapshotId
from firnline.policy.periods import LONGEST_AGE_MS
from firnline.ports.abilities import Dropping
from firnline.ports.formats import Amendment, Edited, State


def expired(state: State, snapshots: Set[SnapshotId], refs: Set[str], amendment: Amendment) -> Edited:
    """Returns the repository without these. Raises RefusedForSafety where the library would take others, too."""
    repository, without = repository_in(state), _without(state, refs)
    cut_us, loose = _parts(without, snapshots)
    after = _of(without, _rewriting(without, cut_us, loose).after)
    _refuse_other(repository, after, snapshots)
    gone = [repository.snapshots[each] for each in sorted(snapshots)]
    removal = Removal(
        tuple(snapshot_object(repository, each) for each in gone),
        {name: state.refs[name].snapshot for name in sorted(refs)},
        {"snapshots": [_saved(each) for each in gone]},
    )
    edited = _edited(state, _with_refs(after, state, amendment), amendment, cut_us, removal)
    return replace(edited, document={**edited.document, "loose": sorted(loose)})


def rewriting_of(state: State, snapshots: Set[SnapshotId], refs: Set[str]) -> Rewriting:
    """Returns what a commit that takes these out makes of the history, with the refs that it deletes."""
    history, without = RefHistory.of(repository_in(state)), _without(state, refs)
    found = _rewriting(without, *_parts(without, snapshots))
    still = found.after.reachable()
    return replace(
        found,
        before=history,
        deleted=tuple(_by_name(state, refs)),
        dangling=frozenset(history.snapshots.keys() - still),
        released=frozenset(history.reachable() - still),
    )


def _refuse_other(before: IcechunkRepository, after: IcechunkRepository, snapshots: Set[SnapshotId]) -> None:
    other = (before.snapshots.keys() - after.snapshots.keys()) ^ snapshots
    if other:
        raise RefusedForSafety(
            f"{min(other)} would not come to its end as it was planned", hint="nothing was changed; plan again"
        )


def amended(state: State, amendment: Amendment) -> Edited:
    """Returns the repository with refs made or deleted, and with other notes."""
    after = _with_refs(_without(state, amendment.refs_gone), state, amendment)
    return _edited(state, after, amendment, None, Removal())


def dropping(state: State, refs: Set[str]) -> Dropping:
    """Returns what goes with these refs: in version 1 all that no other leads to; version 2 lists it until it expires.

    Raises UsageError where there is none of that name, or it is the main branch.
    """
    for name in sorted(refs):
        if name not in state.refs:
            raise UsageError(f"{state.table} has no ref {name!r}", hint="`firnline plan TABLE --list` shows them")
    if any(ref.kind is RefKind.BRANCH and ref.name == MAIN for ref in _by_name(state, refs)):
        raise UsageError("the main branch cannot be dropped", hint="Icechunk's readers begin with it")
    lost = frozenset(repository_in(state).snapshots.keys() - _without(state, refs).snapshots.keys())
    seen = {name: state.refs[name].snapshot for name in sorted(refs)}
    return Dropping(lost, frozenset(refs), {**seen, **{each: each for each in sorted(lost)}})


def with_removal(state: State, removal: Removal) -> State:
    """Returns the state as if what was taken out were in the history again; refs that went stay away."""
    repository = repository_in(state)
    back = {each["id"]: _loaded(each) for each in removal.payload.get("snapshots", ())}
    return state_of(replace(repository, snapshots={**back, **repository.snapshots}), notes_in(state), state.table)


def part_of(removal: Removal, snapshots: Set[SnapshotId]) -> Removal:
    saved = [each for each in removal.payload.get("snapshots", ()) if each["id"] in snapshots]
    gone = tuple(each for each in removal.snapshots if str(each["snapshot-id"]) in snapshots)
    return Removal(gone, payload={"snapshots": saved})


def _by_name(state: State, refs: Set[str]) -> list[Ref]:
    return [ref_in(state, name) for name in sorted(refs)]


def _without(state: State, refs: Set[str]) -> IcechunkRepository:
    """Returns the repository without these refs."""
    repository = repository_in(state)
    return _of(repository, RefHistory.of(repository).without(refs=_by_name(state, refs)))


def _parts(repository: IcechunkRepository, snapshots: Set[SnapshotId]) -> tuple[int | None, frozenset[SnapshotId]]:
    """Returns what takes out those of the snapshots that are still there: a threshold, and which go one by one."""
    return parts_of(RefHistory.of(repository), snapshots & repository.snapshots.keys(), repository.spec)


def _rewriting(repository: IcechunkRepository, cut_us: int | None, loose: Set[SnapshotId]) -> Rewriting:
    history = RefHistory.of(repository)
    found = rewritten(history, survivors_since(history, cut_us or 0), manner_of(repository.spec))
    return replace(found, after=found.after.without(without_followers(found.after, loose))) if loose else found


def _of(repository: IcechunkRepository, history: RefHistory) -> IcechunkRepository:
    """Returns the repository with this history. In version 1 it has what refs lead to, and nothing else."""
    reached = history.reachable() if repository.spec == 1 else history.snapshots.keys()
    return replace(
        repository,
        branches=_named(history.refs, RefKind.BRANCH),
        tags=_named(history.refs, RefKind.TAG),
        snapshots={name: each for name, each in history.snapshots.items() if name in reached},
    )


def _named(refs: Iterable[Ref], kind: RefKind) -> dict[str, SnapshotId]:
    return {ref.name: ref.snapshot for ref in refs if ref.kind is kind}


def _with_refs(repository: IcechunkRepository, state: State, amendment: Amendment) -> IcechunkRepository:
    """Returns the repository with the tags that an amendment makes. Raises where Icechunk could not make one."""
    made = {}
    for ref in amendment.refs:
        if ref.kind is not RefKind.TAG:
            raise UnsupportedFormat(f"{ref.name} would be a branch", hint="Icechunk's writers make branches")
        if ref.max_ref_age_ms is not None and ref.max_ref_age_ms < LONGEST_AGE_MS:
            raise UnsupportedFormat("Icechunk's tags have no end", hint="make it without --retain, and remove it then")
        if not is_seen_tag(ref.name):
            raise UsageError(
                f"a tag {ref.name} would hold nothing: Icechunk's own tools do not see every tag of such a name",
                hint="use another name: letters a to z, digits, and - _ . = : + @",
            )
        if ref.name in repository.deleted_tags or ref.name in repository_in(state).tags:
            raise UsageError(
                f"{state.table} has or had a tag {ref.name}, and Icechunk gives no tag's name twice",
                hint="use another name",
            )
        made[ref.name] = ref.snapshot
    return replace(repository, tags={**repository.tags, **made})


def _edited(
    state: State, after: IcechunkRepository, amendment: Amendment, cut_us: int | None, removal: Removal
) -> Edited:
    kept = {name: said for name, said in notes_in(state).items() if name not in amendment.properties_gone}
    notes = {**kept, **amendment.properties}
    document: Mapping[str, Any] = {
        "repository": after,
        "properties": notes,
        "threshold_us": cut_us,
        "gone": list(removal.ids),
    }
    return Edited(b"", version_name(after, notes), document, removal)


def _saved(each: HistorySnapshot) -> dict[str, Any]:
    return {
        "id": each.id,
        "parent": each.parent,
        "flushed_us": each.flushed_us,
        "message": each.message,
        "pruned": list(each.pruned),
    }


def _loaded(said: Mapping[str, Any]) -> HistorySnapshot:
    pruned = tuple(map(str, said["pruned"]))
    return HistorySnapshot(str(said["id"]), said["parent"], int(said["flushed_us"]), str(said["message"]), pruned)
