"""Adopting a table: native retention written so that no other engine's own expiry undercuts the policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from firnline.errors import UsageError
from firnline.model.snapshots import Ref
from firnline.ops.runs.change import amend
from firnline.ops.runs.decision import policy_in_force
from firnline.ops.table.context import TableContext
from firnline.plans.request import Request
from firnline.policy.native import LONGEST_AGE_MS
from firnline.policy.policy import Policy
from firnline.policy.rules import KeepLast, KeepPeriods, KeepTags, KeepWithin
from firnline.ports.abilities import ExpiringWriters, LengthensRetention
from firnline.ports.formats import Amendment, State

_EVERY = 1 << 62
_OTHERS = "(so on main alone)"


@dataclass(frozen=True, slots=True)
class Adoption:
    """One value that other engines read, as it is and as the policy needs it."""

    what: str
    before: str
    after: str

    def to_json(self) -> dict[str, str]:
        """Returns one entry of `adopt --json`."""
        return {"what": self.what, "before": self.before, "after": self.after}


def adoption_of(work: TableContext, state: State) -> tuple[Amendment, tuple[Adoption, ...]]:
    """Returns what would be written, and the same for people to read. Retention is only ever lengthened.

    Raises UsageError where the format has none: what cannot be written must not pass for written.
    """
    table_format = work.source.format
    if not isinstance(table_format, ExpiringWriters | LengthensRetention):
        raise _nothing_to_adopt(state)
    policy = policy_in_force(state, work.source.name, work.config, Request()).policy
    if policy.is_native:
        return Amendment(), ()
    if isinstance(table_format, ExpiringWriters):
        return _of_writers(state, table_format.expiry_off(state))
    wanted = table_format.lengthened(state, longest_age(policy), most_snapshots(policy), policy.tag_patterns)
    properties = wanted.properties.items()
    shown = [Adoption(name, state.properties.get(name, "(default)"), value) for name, value in properties]
    shown += [
        Adoption(f"{ref.kind} {ref.name}", _retention(state.refs[ref.name]), _retention(ref)) for ref in wanted.refs
    ]
    return wanted, tuple(shown)


def _nothing_to_adopt(state: State) -> UsageError:
    return UsageError(
        f"{state.table} cannot be adopted: the format {state.format} has no retention that others go by",
        hint="nothing was changed; who else expires such a table heeds refs alone: a hold or a tag keeps a snapshot",
    )


def _of_writers(state: State, quiet: Mapping[str, str]) -> tuple[Amendment, tuple[Adoption, ...]]:
    """Returns what turns the writers' own expiry off: it looks at one branch alone, and loses files of the others."""
    said = {name: state.properties.get(name, "(default)") for name in quiet}
    shown = (Adoption(name, _OTHERS if said[name] == value else said[name], value) for name, value in quiet.items())
    return Amendment(properties=quiet), tuple(shown)


def adopt(work: TableContext) -> tuple[Adoption, ...]:
    """Returns what was written; nothing where the table already says it."""
    written: tuple[Adoption, ...] = ()

    def wanted(state: State) -> Amendment:
        nonlocal written
        amendment, written = adoption_of(work, state)
        return amendment

    amend(work, wanted)
    return written


def unaware(work: TableContext) -> Sequence[str]:
    """Returns the branches on which a job still writes that started before it was told to expire nothing."""
    table_format = work.source.format
    return table_format.unaware(work.source.load()) if isinstance(table_format, ExpiringWriters) else ()


def longest_age(policy: Policy) -> int:
    """Returns an age within which lies everything that the policy may keep.

    A rule that counts periods reaches back as far as there are snapshots, so no finite age covers it.
    """
    ages = [0]
    for setting in policy.rules:
        match setting.value:
            case KeepWithin(window_ms):
                ages.append(window_ms)
            case KeepPeriods(_, _, window_ms):
                ages.append(LONGEST_AGE_MS if window_ms is None else window_ms)
            case KeepLast() | KeepTags():
                pass
    return max(ages)


def most_snapshots(policy: Policy) -> int:
    counts = [setting.value.count for setting in policy.rules if isinstance(setting.value, KeepLast)]
    return max((_EVERY if count is None else count for count in counts), default=1)


def _retention(ref: Ref) -> str:
    said = {
        "max-ref-age-ms": ref.max_ref_age_ms,
        "max-snapshot-age-ms": ref.max_snapshot_age_ms,
        "min-snapshots-to-keep": ref.min_snapshots_to_keep,
    }
    return ", ".join(f"{name}={value}" for name, value in said.items() if value is not None) or "(default)"
