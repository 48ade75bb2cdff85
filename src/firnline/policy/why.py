"""Why a snapshot goes: what each rule of the policy says about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import takewhile

from firnline.model.graph import Graph
from firnline.model.snapshots import Ref, Snapshot, SnapshotId
from firnline.model.times import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from firnline.policy.decide import in_order
from firnline.policy.native import NativeRetention
from firnline.policy.periods import newest_of_each
from firnline.policy.policy import Policy
from firnline.policy.refs import Case, StandingRefs, judge_refs
from firnline.policy.rules import BranchTimeline, KeepLast, KeepPeriods, KeepTags, KeepWithin, Rule, timelines
from firnline.policy.walks import Walk, native_walk, numbered, own_walk, referenced


def explain_expired(
    snapshot: SnapshotId,
    graph: Graph,
    refs: Mapping[str, Ref],
    current: SnapshotId | None,
    native: NativeRetention,
    *,
    policy: Policy,
    now_ms: int,
) -> tuple[str, ...]:
    """Returns, for a snapshot that `decide` expires with these arguments, why no ref and no rule keeps it.

    For a snapshot that stays the sentences would be untrue: look at its reasons instead.
    """
    case = Case.of(graph, refs, current, native, now_ms)
    standing = judge_refs(case, policy.tag_patterns)
    gone = case.graph[snapshot]
    lines = [*_expired_refs(case, standing, gone)]
    if policy.is_native:
        return (*lines, *_natively(case, standing, gone))
    lines += [line for ref in standing.branches for line in _walked(case, own_walk(case, ref), gone)]
    found = [timeline for timeline in timelines(case, standing) if gone in timeline.lineage]
    if gone.id not in referenced(case, standing) and case.native.ranges is None:
        lines.append(_unreferenced(case, gone))
    for rule in in_order(setting.value for setting in policy.rules):
        lines += _by_rule(case, rule, found, gone)
    return tuple(lines)


def _expired_refs(case: Case, standing: StandingRefs, gone: Snapshot) -> Iterator[str]:
    for name in standing.expired:
        ref = case.refs[name]
        if ref.snapshot == gone.id:
            yield f"{ref.kind} {name}: expired, {rough_duration(case.ref_overdue_ms(ref))} past its age"


def _natively(case: Case, standing: StandingRefs, gone: Snapshot) -> Iterator[str]:
    if case.native.ranges is not None:
        return _below_range(case, standing, gone)
    walked = [line for ref in standing.branches for line in _walked(case, native_walk(case, ref), gone)]
    return iter(walked or [_unreferenced(case, gone)])


def _below_range(case: Case, standing: StandingRefs, gone: Snapshot) -> Iterator[str]:
    """Yields where the range begins of the branch that the snapshot is on."""
    found = ((ref, numbered(case, ref)) for ref in standing.branches)
    for ref, range_of in found:
        if range_of is not None and any(each.id == gone.id for each in case.graph.lineage(ref.snapshot)):
            kept = range_of.range.describe(range_of.age_text)
            yield f"ref {ref.name}: it keeps {range_of.first_kept} and above, {kept}"
            return
    yield "no tag holds it any more, and it is on no branch"


def _unreferenced(case: Case, gone: Snapshot) -> str:
    late = case.native.cutoff(case.now_ms) - gone.timestamp_ms
    return f"unreferenced: not {case.native.age_text()}, {_too_old(late)}"


def _walked(case: Case, walk: Walk, gone: Snapshot) -> Iterator[str]:
    """Yields why a branch's walk did not come as far as this snapshot; nothing if it is on another branch."""
    if not walk.at_least and walk.cutoff_ms is None:
        return
    stopped: Snapshot | None = None
    for number, snapshot in enumerate(case.graph.lineage(walk.head), 1):
        if stopped is None and number > walk.at_least and not walk.young(snapshot):
            stopped = snapshot
        if snapshot.id == gone.id and stopped is not None:
            age = _by_age(walk, gone, stopped)
            yield f"ref {walk.branch}: number {number}, it keeps {walk.at_least}{age}"


def _by_age(walk: Walk, gone: Snapshot, stopped: Snapshot) -> str:
    if walk.cutoff_ms is None:
        return ""
    if walk.young(gone):
        return f"; {walk.age_text}, but a branch keeps no gaps and {stopped.id} above it goes"
    return f"; not {walk.age_text}, {_too_old(walk.cutoff_ms - gone.timestamp_ms)}"


def _by_rule(case: Case, rule: Rule, found: list[BranchTimeline], gone: Snapshot) -> Iterator[str]:
    if isinstance(rule, KeepTags):
        yield f"{rule}: no tag of such a name points at it"
    elif isinstance(rule, KeepWithin):
        yield f"{rule}: {_too_old(case.now_ms - rule.window_ms - gone.timestamp_ms)}"
    elif not found:
        yield f"{rule}: on no branch that stays"
    else:
        yield from (_on_timeline(case, rule, timeline, gone) for timeline in found)


def _on_timeline(case: Case, rule: KeepLast | KeepPeriods, timeline: BranchTimeline, gone: Snapshot) -> str:
    if isinstance(rule, KeepLast):
        return f"{rule}: number {timeline.lineage.index(gone) + 1} on {timeline.branch}"
    if rule.window_ms is not None and gone.timestamp_ms < case.now_ms - rule.window_ms:
        return f"{rule}: {_too_old(case.now_ms - rule.window_ms - gone.timestamp_ms)}"
    return f"{rule}: {_in_its_period(rule, timeline, gone)}"


def _in_its_period(rule: KeepPeriods, timeline: BranchTimeline, gone: Snapshot) -> str:
    until_gone = takewhile(lambda snapshot: snapshot is not gone, timeline.by_time)
    starts = list(newest_of_each(rule.period, [*until_gone, gone]))
    noun = rule.period.noun
    if rule.count is not None and len(starts) > rule.count:
        return f"its {noun} is number {len(starts)} on {timeline.branch}"
    return f"a newer snapshot of the same {noun} stays on {timeline.branch} ({starts[-1].id})"


def _too_old(late_ms: int) -> str:
    return f"{rough_duration(late_ms)} too old"


def rough_duration(ms: int) -> str:
    """Returns a duration in its largest unit, rounded down: enough to see how near a boundary was."""
    for unit, length in (("d", DAY_MS), ("h", HOUR_MS), ("m", MINUTE_MS), ("s", SECOND_MS)):
        if ms >= length:
            return f"{ms // length}{unit}"
    return f"{ms} ms"
