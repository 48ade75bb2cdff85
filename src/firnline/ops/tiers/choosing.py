"""What a run hands to a tier: of the snapshots that expire, those that the tier keeps."""

from __future__ import annotations

from collections.abc import Set
from typing import TYPE_CHECKING

from firnline.errors import PolicyError, RefusedForSafety
from firnline.model.locations import stem_of
from firnline.model.snapshots import SnapshotId
from firnline.ops.table.context import TableContext
from firnline.ops.tiers.tier import hands_over, tier_of
from firnline.plans.plan import Archive
from firnline.plans.request import Request
from firnline.ports.formats import State

if TYPE_CHECKING:
    from firnline.policy.tiers import TierPolicy


def choose_archive(
    work: TableContext, state: State, request: Request, expired: Set[SnapshotId], expired_refs: Set[str]
) -> Archive | None:
    """Returns what is handed over before these snapshots go; None where nothing is. Reads the tier's table, since the
    newest snapshot of a day may be there already.
    """
    policy = tier_of(state, work.source.name, work.config, request)
    if policy is None or not expired:
        return None
    hands_over(work.source.format, state.table)
    refuse_misplaced(work, policy, state)

    from firnline.ops.tiers.finding import open_for

    tier = open_for(work, state, policy.name)
    there = tier.load()
    known = {each.id: each for each in (*(there.graph if there else ()), *state.graph)}
    tagged = {head for name in expired_refs if (head := head_of(state, name)) is not None}
    chosen = policy.chosen(expired, known.values(), tagged)
    ids = tuple(each.id for each in state.graph if each.id in chosen)
    if not ids:
        return None
    return Archive(policy.name, str(tier.table), policy.root, policy.storage_class, ids, bundle=policy.bundle)


def head_of(state: State, ref: str) -> SnapshotId | None:
    """Returns the snapshot of a ref; None for a branch without any, which some formats have."""
    found = state.refs.get(ref)
    return None if found is None else found.snapshot


def refuse_misplaced(work: TableContext, policy: TierPolicy, state: State) -> None:
    """Raises where the tier would lie in the live table's folders, or around them, or cannot name the table: what is
    cold would be looked at, and cleaned, as if it were live. Folders count by the names that they really have.
    """
    from firnline.policy.tiers import tier_named

    name = work.source.name
    if not name.catalog:
        raise PolicyError(
            f"{state.table} is in no catalog, so the tier {policy.name} has no name for it",
            hint="register the table in a catalog, or write `archive: off`",
        )
    if name.catalog == policy.name:
        raise PolicyError(
            f"{state.table} is in the tier {policy.name} itself", hint="write `archive: off` for that catalog"
        )
    if name.catalog in work.config.tiers and tier_named(work.config.tiers, name.catalog).bundle is not None:
        raise PolicyError(
            f"{state.table} sleeps in bundles of the tier {name.catalog}: from there nothing goes on to {policy.name}",
            hint="write `archive: off` for that catalog; `firnline restore` brings snapshots back",
        )
    root = work.real(stem_of(policy.root))
    for folder in {state.location, *state.owned}:
        real = work.real(stem_of(folder))
        if real.startswith(root) or root.startswith(real):
            raise RefusedForSafety(
                f"the tier {policy.name} at {policy.root} and {folder} lie in each other",
                hint="give the tier a root of its own",
            )
