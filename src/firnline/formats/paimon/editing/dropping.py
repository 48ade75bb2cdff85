"""What goes with a tag or a branch that is dropped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

from firnline.errors import RefusedForSafety, UsageError
from firnline.formats.paimon.reading.branches import Branch, SnapshotVersion, branches_of, versions_of
from firnline.formats.paimon.reading.snapshot import PaimonSnapshot
from firnline.formats.paimon.reading.state import files_in, tag_ref_name
from firnline.model.snapshots import MAIN
from firnline.ports.abilities import Dropping
from firnline.ports.formats import State

_READ_BY = (
    "scan.fallback-branch",
    "scan.primary-branch",
    "scan.fallback-snapshot-branch",
    "scan.fallback-delta-branch",
)


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
    refuse_read(branches, gone)
    left = {each.id: each for branch in branches.values() for each in _left_alone(branch, set(branches), gone)}
    tagged = (each for branch in branches.values() for each in _tagged(branch, set(branches)))
    seen = {name: snapshot for name, snapshot in tagged if name in gone}
    seen |= {each.id: each.snapshot for each in left.values()}
    return Dropping(frozenset(left), frozenset(gone), {name: " ".join(each.content) for name, each in seen.items()})


def refuse_read(branches: Mapping[str, Branch], gone: Set[str]) -> None:
    """Raises RefusedForSafety if the options of a branch that stays make its readers read one that goes: they would
    miss its rows, and nobody would tell them.
    """
    for branch in (each for name, each in branches.items() if not name or name not in gone):
        for option in _READ_BY:
            read = branch.schema.options.get(option, "").strip()
            if read and read in gone and read in branches:
                raise RefusedForSafety(
                    f"{option} of the branch {branch.name or MAIN} names {read}: who reads the one reads the other",
                    hint=f"nothing was changed; set {option} otherwise with Paimon itself first",
                )


def _gone(branch: Branch, branches: set[str], refs: Set[str]) -> Iterator[str]:
    dropped = bool(branch.name) and branch.name in refs
    if dropped:
        yield branch.name
    for name in branch.tags:
        known_as = tag_ref_name(branch.name, name, branches)
        if dropped or known_as in refs:
            yield known_as


def _tagged(branch: Branch, branches: set[str]) -> Iterator[tuple[str, PaimonSnapshot]]:
    return ((tag_ref_name(branch.name, name, branches), tag.snapshot) for name, tag in branch.tags.items())


def _left_alone(branch: Branch, branches: set[str], gone: Set[str]) -> Iterator[SnapshotVersion]:
    """Yields the versions that are in no folder that stays, and whose last tag goes."""
    for version in versions_of(branch).values():
        tags = {tag_ref_name(branch.name, tag.name, branches) for tag in version.tags}
        if branch.name in gone or (not version.in_folder and tags <= gone):
            yield version
