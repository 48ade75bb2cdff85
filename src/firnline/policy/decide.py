"""The pure function from a table's history and a policy to what stays, with every reason, and what goes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from firnline.model.graph import Graph
from firnline.model.holds import Hold, Pin
from firnline.model.snapshots import Ref, SnapshotId
from firnline.model.times import tell_instant
from firnline.policy.native import NativeRetention
from firnline.policy.policy import Policy
from firnline.policy.reasons import Judgement, Reason, ReasonBook
from firnline.policy.refs import Case, StandingRefs, judge_refs, keep_heads, keep_tags
from firnline.policy.rules import RULE_NAMES, KeepLast, KeepPeriods, KeepWithin, Rule, timelines
from firnline.policy.walks import keep_natively, keep_unreferenced, own_walk


@dataclass(frozen=True, slots=True)
class Decision:
    """Every snapshot of the table is either kept, with at least one reason, or expired (oldest first)."""

    kept: Mapping[SnapshotId, tuple[Reason, ...]]
    expired: tuple[SnapshotId, ...]
    expired_refs: tuple[str, ...]
    now_ms: int


def decide(
    graph: Graph,
    refs: Mapping[str, Ref],
    current: SnapshotId | None,
    native: NativeRetention,
    policy: Policy,
    *,
    now_ms: int,
    holds: Iterable[Hold] = (),
    pins: Iterable[Pin] = (),
) -> Decision:
    """Returns what stays and why, and what goes. The same arguments always give the same decision.

    Raises UnreadableMetadata where `main` or the current snapshot is not in the graph. Adding a rule to a
    policy never expires more; the first rule of all replaces the table's own retention and may.
    """
    case = Case.of(graph, refs, current, native, now_ms)
    standing = judge_refs(case, policy.tag_patterns)
    in_force = tuple(hold for hold in holds if hold.in_force(now_ms))
    ledger = ReasonBook()
    ledger.add_all(keep_heads(case, standing))
    ledger.add_all(keep_held(graph, in_force))
    standing_pins = (pin for pin in pins if pin.snapshot in graph and pin.in_force(now_ms))
    ledger.add_all((pin.snapshot, Reason(pin.rule, pin.by)) for pin in standing_pins)
    _keep_by_policy(ledger, case, standing, policy)
    table_held = any(hold.snapshot is None for hold in in_force)
    expired_refs = () if table_held else standing.expired
    return Decision(ledger.kept, _oldest_first(graph, ledger.kept), expired_refs, now_ms)


def keep_held(graph: Graph, holds: Iterable[Hold]) -> Iterator[Judgement]:
    """Yields what the holds keep; a hold on the table keeps every snapshot."""
    for hold in holds:
        until = "it is released" if hold.until_ms is None else tell_instant(hold.until_ms)
        reason = Reason("hold", f"{hold.name}: by {hold.who}, {hold.why}, until {until}")
        if hold.snapshot is None:
            yield from ((snapshot.id, reason) for snapshot in graph)
        elif hold.snapshot in graph:
            yield hold.snapshot, reason


def _keep_by_policy(ledger: ReasonBook, case: Case, refs: StandingRefs, policy: Policy) -> None:
    if policy.is_native:
        ledger.add_all(keep_natively(case, refs))
        return
    rules = in_order(setting.value for setting in policy.rules)
    ledger.add_all(keep_tags(refs, policy.tag_patterns))
    for ref in refs.branches:
        ledger.add_all(own_walk(case, ref).judge(case))
    # A commit that was staged a minute ago is on no timeline yet: no rule would see it before it is published.
    if case.native.has_age:
        ledger.add_all(keep_unreferenced(case, refs))
    for rule in rules:
        if isinstance(rule, KeepWithin):
            ledger.add_all(keep_within(case, rule))
    _keep_on_timelines(ledger, case, refs, rules)


def _keep_on_timelines(ledger: ReasonBook, case: Case, refs: StandingRefs, rules: Iterable[Rule]) -> None:
    wanted = [rule for rule in rules if isinstance(rule, KeepLast | KeepPeriods)]
    if not wanted:
        return
    for timeline in timelines(case, refs):
        for rule in wanted:
            ledger.add_first(timeline.judge(rule, case.now_ms))


def keep_within(case: Case, rule: KeepWithin) -> Iterator[Judgement]:
    """Yields every snapshot of the table that is not older than the window."""
    cutoff = case.now_ms - rule.window_ms
    name, _, detail = str(rule).partition(" ")
    reason = Reason(name, detail)
    return ((snapshot.id, reason) for snapshot in case.graph if snapshot.timestamp_ms >= cutoff)


def in_order(rules: Iterable[Rule]) -> list[Rule]:
    """Returns the rules in one fixed order: the order of writing changes nothing, not even the reasons."""
    return sorted(set(rules), key=lambda rule: (RULE_NAMES.index(rule.name), str(rule)))


def _oldest_first(graph: Graph, kept: Mapping[SnapshotId, object]) -> tuple[SnapshotId, ...]:
    # Two stable sorts need no million key tuples; ids settle equal times, whatever the order of loading.
    gone = sorted(snapshot.id for snapshot in graph if snapshot.id not in kept)
    gone.sort(key=lambda snapshot: graph[snapshot].timestamp_ms)
    return tuple(gone)
