"""Settling what stays: the policy in force, then the decision. Every use case that decides goes through here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from shlex import quote

from firnline.errors import CollectionForbidden
from firnline.model.holds import Hold
from firnline.model.snapshots import MAIN
from firnline.model.times import tell_instant
from firnline.ops.reachability.pointed import pins_of
from firnline.plans.request import Request
from firnline.policy.decide import Decision, decide
from firnline.policy.inherit import Effective, effective, with_native_flags
from firnline.policy.native import NativeRetention
from firnline.policy.parse import Section, longest_write_ms
from firnline.policy.policy import Level, Policy
from firnline.policy.readers import ReaderNeeds
from firnline.ports.abilities import DoubtsTimes, FitsDecisions, PointedVersion
from firnline.ports.catalogs import TableName
from firnline.ports.formats import State, TableFormat
from firnline.tiers.belonging import is_archive


@dataclass(frozen=True, slots=True)
class Settled:
    """A decision with the policy that made it. `seen` is what refs that are dropped hold at this moment."""

    effective: Effective
    native: NativeRetention
    decision: Decision
    dropped: tuple[str, ...] = ()
    seen: Mapping[str, str] = field(default_factory=dict)

    @property
    def policy_text(self) -> str:
        if self.dropped:
            return f"drop {', '.join(self.dropped)}; nothing else goes"
        return self.effective.policy.describe(self.native)


def decide_now(
    table_format: TableFormat,
    state: State,
    name: TableName,
    config: Section,
    request: Request,
    now_ms: int,
    pointed: Sequence[PointedVersion],
    read: ReaderNeeds,
) -> Settled:
    """Returns what stays in this state of the table, and why; `pointed` is what its pointers lead to now, `read` what
    readers need. Raises where the table forbids any removal, or its format cannot bring about what the policy asks for.
    """
    if state.forbidden:
        raise CollectionForbidden(_why_nothing(state), hint=_way_out(state))
    in_force = policy_in_force(state, name, config, request)
    refuse_windowless(state, in_force, request)
    at = now_ms if request.now_ms is None else request.now_ms
    native = with_native_flags(state.native, in_force.policy, request.oldest_kept_ms(at), request.retain_last)
    chosen = decide(
        state.graph,
        state.refs,
        state.current,
        native,
        in_force.policy,
        now_ms=at,
        holds=_holds_in_force(state, now_ms, at),
        pins=(*read.pins, *pins_of(pointed)),
    )
    return Settled(in_force, native, _fitted(table_format, state, chosen, request, now_ms - longest_write_ms(config)))


def window_ms(state: State, native: NativeRetention, policy: Policy, now_ms: int) -> int:
    """Returns how far back the table keeps history by its policy: nobody asks for what is older, so nothing remembers
    it longer. What a tag, another branch, a hold or a pin keeps beyond that are single snapshots, for years.
    """
    main = {name: ref for name, ref in state.refs.items() if name == MAIN}
    alone = decide(state.graph, main, state.current, native, policy, now_ms=now_ms)
    return now_ms - min((state.graph[each].timestamp_ms for each in alone.kept), default=now_ms)


def usual_window_ms(state: State, name: TableName, config: Section, now_ms: int) -> int:
    """Returns the window of a plan that nothing was asked of. Raises where the policy cannot be read or applied."""
    policy = policy_in_force(state, name, config, Request()).policy
    return window_ms(state, state.native, policy, now_ms)


def refuse_windowless(state: State, in_force: Effective, request: Request) -> None:
    """Raises CollectionForbidden where a tier's own table would lose snapshots without being told for itself how long
    it keeps them, and to which tier they go then: what holds for all tables, or by default, is meant for live ones.
    """
    if not is_archive(state.uuid, state.properties):
        return
    if in_force.archive.value is None:
        raise CollectionForbidden(
            f"nothing of {state.table} may be removed: it keeps the history of another table",
            hint="`archive: TIER` for its catalog in firnline.yaml hands what is too old for it to the next tier",
        )
    own = [each for each in in_force.policy.rules if each.source.level not in (Level.DEFAULT, Level.GLOBAL)]
    if not own and request.older_than_ms is None:
        raise CollectionForbidden(
            f"nothing of {state.table} may be removed: no rule of its own says how long a tier's table keeps history",
            hint="write one for its catalog in firnline.yaml, such as `keep: {within: 2555d}`",
        )


def decide_to_act(
    table_format: TableFormat,
    state: State,
    name: TableName,
    config: Section,
    request: Request,
    now_ms: int,
    pointed: Sequence[PointedVersion],
    read: ReaderNeeds,
) -> Settled:
    """Returns the same for a plan or a commit. Raises RefusedForSafety, too, where the ages of what goes are in doubt:
    that is asked of the store, so who only explains does without.
    """
    settled = decide_now(table_format, state, name, config, request, now_ms, pointed, read)
    going = frozenset(settled.decision.expired)
    if going and not request.drop and isinstance(table_format, DoubtsTimes):
        table_format.refuse_doubtful(state, going)
    return settled


def _fitted(
    table_format: TableFormat, state: State, chosen: Decision, request: Request, open_since_ms: int
) -> Decision:
    """Returns what a commit can bring about. A run that drops refs takes nothing else, and goes by another decision."""
    if request.drop or not isinstance(table_format, FitsDecisions):
        return chosen
    return table_format.fitted(state, chosen, open_since_ms)


def _holds_in_force(state: State, now_ms: int, at: int) -> tuple[Hold, ...]:
    """Returns the holds; one that is in force today counts at whatever instant the decision is made for."""
    return tuple(
        replace(hold, until_ms=at) if hold.in_force(now_ms) > hold.in_force(at) else hold for hold in state.holds
    )


def _why_nothing(state: State) -> str:
    """Returns why nothing may go; of holds on the whole table all of them, for each needs a release of its own."""
    held = _holds_on_all(state)
    if not held or not _is_note_of_holds(state):
        return f"nothing of {state.table} may be removed: {state.forbidden}"
    return f"{state.table} is held as a whole: {', '.join(map(_told, held))}"


def _holds_on_all(state: State) -> list[Hold]:
    return [hold for hold in state.holds if hold.snapshot is None and not hold.damage]


def _is_note_of_holds(state: State) -> bool:
    """Tells whether what forbids it is the word that holds on the whole table write for other engines."""
    damaged = any(hold.damage for hold in state.holds)
    return not damaged and "gc.enabled" in (state.forbidden or "")


def _told(hold: Hold) -> str:
    why = f'"{hold.why}"' if hold.why else ""
    until = "until it is released" if hold.until_ms is None else f"until {tell_instant(hold.until_ms)}"
    return f"{hold.name} ({', '.join(filter(None, [hold.who, why, until]))})"


def _way_out(state: State) -> str:
    damaged = next((hold.name for hold in state.holds if hold.damage), None)
    if damaged is not None:
        release = f"`firnline hold release {quote(state.table)} {quote(damaged)}` removes it"
        return f"correct the property; or, if nobody needs the hold, {release}"
    held = [f"`firnline hold release {quote(state.table)} {quote(each.name)}`" for each in _holds_on_all(state)]
    if len(held) == 1:
        return f"{held[0]} ends the hold on the whole table, if its time has come"
    if held:
        return f"{', '.join(held)} end the holds on the whole table, if their time has come"
    if state.properties.get("gc.enabled", "true").lower() == "true":
        return "once no other format needs the files, take out the word that says so, where it was written"
    return "set the table property gc.enabled to true first, if that is really meant"


def policy_in_force(state: State, name: TableName, config: Section, request: Request) -> Effective:
    catalog = name.catalog or None
    return effective(config, catalog, name.namespace, name.name, properties=state.properties, flags=request.keep)


def includes_outside(effective: Effective, request: Request) -> bool:
    """Tells whether files outside the table's own folders may go: by the operator's word."""
    asked = request.include_outside
    return effective.include_outside.value if asked is None else asked
