"""What goes with a tag or a branch that somebody drops."""

from __future__ import annotations

from collections.abc import Iterator, Set

from firnline.errors import UsageError
from firnline.formats.paimon.branches import Branch, branches_of
from firnline.formats.paimon.state import files_in, tag_ref_name
from firnline.formats.paimon.versions import versions_of
from firnline.model.snapshots import MAIN, SnapshotId
from firnline.ports.formats import Dropping, State


def dropping(state: State, refs: Set[str]) -> Dropping:
    """Returns the refs, with all tags of a branch that goes, and the snapshots that nothing holds then.

    Raises UsageError for a name that is neither a tag nor a branch, and for the main branch.
    """
    branches = branches_of(files_in(state), state.location)
    if MAIN in refs:
        raise UsageError("the main branch is the table itself", hint="name another branch")
    gone = {name for branch in branches.values() for name in _gone(branch, set(branches), refs)}
    unknown = sorted(refs - gone)
    if unknown:
        raise UsageError(
            f"{state.table} has no branch or tag {unknown[0]!r}", hint="`firnline tag list TABLE` shows tags"
        )
    left = (each for branch in branches.values() for each in _left_alone(branch, set(branches), gone))
    return Dropping(frozenset(left), frozenset(gone))


def _gone(branch: Branch, branches: set[str], refs: Set[str]) -> Iterator[str]:
    dropped = bool(branch.name) and branch.name in refs
    if dropped:
        yield branch.name
    for name in branch.tags:
        known_as = tag_ref_name(branch.name, name, branches)
        if dropped or known_as in refs:
            yield known_as


def _left_alone(branch: Branch, branches: set[str], gone: Set[str]) -> Iterator[SnapshotId]:
    """Yields the versions that are in no folder that stays, and whose last tag goes."""
    for version in versions_of(branch).values():
        tags = {tag_ref_name(branch.name, tag.name, branches) for tag in version.tags}
        if branch.name in gone or (not version.in_folder and tags <= gone):
            yield version.id
