"""Laws of `decide` on random histories: branches, gaps, loops, clocks that go backwards, refs that lead nowhere."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firnline.model.graph import Graph
from firnline.model.holds import Hold, Pin
from firnline.model.snapshots import MAIN, Ref, RefKind, Snapshot
from firnline.model.times import DAY_MS, HOUR_MS
from firnline.policy.decide import Decision, decide
from firnline.policy.native import NativeRetention
from firnline.policy.periods import Period
from firnline.policy.policy import Level, Policy, Setting, Source
from firnline.policy.rules import KeepLast, KeepPeriods, KeepTags, KeepWithin, Rule
from firnline.policy.why import explain_expired
from harness.lanes import by_lane

CASES = by_lane(100, 100, 20_000)
many = settings(max_examples=CASES, deadline=None, suppress_health_check=[HealthCheck.too_slow])

NOW = 20_000 * DAY_MS
STEP = 6 * HOUR_MS


@dataclass(frozen=True)
class World:
    """Everything that `decide` is given, but the policy."""

    snapshots: tuple[Snapshot, ...]
    refs: dict[str, Ref]
    current: str | None
    native: NativeRetention
    holds: tuple[Hold, ...] = ()
    pins: tuple[Pin, ...] = ()

    def decide(self, *rules: Rule) -> Decision:
        return decide(
            Graph(self.snapshots), self.refs, self.current, self.native, policy(*rules),
            now_ms=NOW, holds=self.holds, pins=self.pins,
        )  # fmt: skip


def policy(*rules: Rule) -> Policy:
    return Policy(tuple(Setting(rule, Source(Level.ASKED)) for rule in rules))


def random_history(random: Random, size: int) -> tuple[Snapshot, ...]:
    """Returns mostly a tree, with now and then a missing parent, a second root or a loop."""
    found = []
    for number in range(size):
        parent = random.choice([None, "gap", *(str(number - 1 - back) for back in (0, 0, 0, 0, 1, 2, -1))])
        found.append(Snapshot(str(number), parent, NOW - random.randint(-2, 60) * STEP))
    return tuple(found)


def age(random: Random) -> int:
    return random.randint(0, 40) * STEP


def maybe(random: Random, value: int) -> int | None:
    return value if random.random() < 0.5 else None


def random_refs(random: Random, ids: list[str]) -> dict[str, Ref]:
    refs: dict[str, Ref] = {}
    for name in random.sample(["dev", "t-1", "t-2", "audit", MAIN], random.randint(0, 5)):
        kind = RefKind.BRANCH if name in ("dev", MAIN) else random.choice(list(RefKind))
        head = random.choice(ids if name == MAIN else [*ids, "gone"])
        ages = maybe(random, age(random)), maybe(random, age(random))
        refs[name] = Ref(name, kind, head, *ages, maybe(random, random.randint(1, 4)))
    return refs


def random_world(size: int, seed: int) -> World:
    random = Random(seed)
    snapshots = random_history(random, size)
    native = NativeRetention(
        age(random),
        random.randint(1, 4),
        random.choice([age(random), 2**63 - 1]),
        maybe(random, NOW - age(random)),
    )
    ids = [snapshot.id for snapshot in snapshots]
    if not ids:
        return World((), {}, None, native)
    return World(snapshots, random_refs(random, ids), random.choice(ids), native)


def protect(world: World, seed: int) -> World:
    """Returns the world with some holds, in force or not, and some pins."""
    random = Random(seed)
    ids = [snapshot.id for snapshot in world.snapshots]
    chosen = random.sample(ids, min(len(ids), random.randint(0, 3)))
    holds = tuple(Hold(i, "w", "y", i, random.choice([None, NOW - 1, NOW])) for i in chosen[:2])
    return replace(world, holds=holds, pins=tuple(Pin(i, "x") for i in chosen[2:]))


# A drawn seed costs far less than a hundred drawn choices, so that thousands of histories take seconds.
sizes, seeds = st.integers(0, 12), st.integers(0, 2**32)
worlds = st.builds(random_world, sizes, seeds)
protected_worlds = st.builds(protect, worlds, seeds)
maybe_count = st.none() | st.integers(1, 4)


def calendar(period: Period, count: int | None, window: int | None) -> Rule:
    return KeepPeriods(period, count) if window is None else KeepPeriods(period, None, period.shortest_ms * window)


rules = st.one_of(
    st.builds(KeepLast, maybe_count),
    st.builds(KeepWithin, st.integers(1, 40).map(lambda steps: steps * STEP)),
    st.builds(calendar, st.sampled_from(Period), maybe_count, st.none() | st.integers(1, 10)),
    st.builds(KeepTags, st.sampled_from([("t-*",), ("audit", "t-?"), ("x",)])),
)
policies = st.lists(rules, min_size=1, max_size=4)
any_policy = st.just([]) | policies


def named_by_kept_refs(world: World, decision: Decision) -> set[str]:
    return {ref.snapshot for ref in world.refs.values() if ref.name not in decision.expired_refs}


@many
@given(protected_worlds, policies, rules)
def test_adding_a_rule_never_expires_more(world: World, policy: list[Rule], extra: Rule) -> None:
    before, after = world.decide(*policy), world.decide(*policy, extra)
    assert set(after.expired) <= set(before.expired)
    assert set(after.expired_refs) <= set(before.expired_refs)
    for snapshot, reasons in before.kept.items():
        gone = {reason.rule for reason in reasons} - {reason.rule for reason in after.kept[snapshot]}
        # A tag that a new rule keeps still names its snapshot, which then is not without a name any more.
        assert gone <= ({"unreferenced"} if snapshot in named_by_kept_refs(world, after) else set())


@many
@given(protected_worlds, policies)
def test_deciding_again_on_what_stayed_expires_nothing(world: World, given_rules: list[Rule]) -> None:
    """Holes that the first run left must not cut the history that the second one sees."""
    first, graph = world.decide(*given_rules), Graph(world.snapshots)
    gone = set(first.expired)
    left = Graph((each for each in graph if each.id not in gone), graph.bridges_without(gone))
    refs = {name: ref for name, ref in world.refs.items() if name not in first.expired_refs}
    again = decide(
        left, refs, world.current, world.native, policy(*given_rules),
        now_ms=NOW, holds=world.holds, pins=world.pins,
    )  # fmt: skip
    assert again.expired == ()


@many
@given(protected_worlds, any_policy, st.randoms(use_true_random=False))
def test_the_order_of_rules_snapshots_and_refs_changes_nothing(world: World, policy: list[Rule], random) -> None:
    shuffled = random.sample(policy, len(policy))
    snapshots = tuple(random.sample(world.snapshots, len(world.snapshots)))
    refs = dict(random.sample(sorted(world.refs.items()), len(world.refs)))
    other = replace(world, snapshots=snapshots, refs=refs)
    assert other.decide(*shuffled) == world.decide(*policy)


@many
@given(protected_worlds, any_policy)
def test_every_snapshot_is_kept_with_a_reason_or_expired(world: World, policy: list[Rule]) -> None:
    decision = world.decide(*policy)
    assert set(decision.kept) | set(decision.expired) == {snapshot.id for snapshot in world.snapshots}
    assert len(decision.kept) + len(decision.expired) == len(world.snapshots)
    assert all(decision.kept.values())
    times = {snapshot.id: snapshot.timestamp_ms for snapshot in world.snapshots}
    assert [times[i] for i in decision.expired] == sorted(times[i] for i in decision.expired)


@many
@given(protected_worlds, any_policy)
def test_what_must_stay_stays(world: World, policy: list[Rule]) -> None:
    decision = world.decide(*policy)
    needed = {pin.snapshot for pin in world.pins} | {h.snapshot for h in world.holds if h.in_force(NOW)}
    needed |= {ref.snapshot for name, ref in world.refs.items() if name not in decision.expired_refs}
    needed |= {world.current} if world.current else set()
    assert needed <= set(decision.kept)


@many
@given(worlds, any_policy)
def test_an_expired_snapshot_hears_from_every_rule(world: World, rules_given: list[Rule]) -> None:
    expired = world.decide(*rules_given).expired
    for snapshot in expired[:3]:
        lines = explain_expired(
            snapshot, Graph(world.snapshots), world.refs, world.current, world.native,
            policy=policy(*rules_given), now_ms=NOW,
        )  # fmt: skip
        assert lines
        assert all(any(line.startswith(f"{rule}: ") for line in lines) for rule in rules_given)
        assert not any(re.search(r"-\d+ ms", line) for line in lines)


# ---------------------------------------------------------------- Iceberg's rules once more, word by word and slowly


def ancestors(world: World, head: str) -> list[Snapshot]:
    found: list[Snapshot] = []
    while True:
        here = [s for s in world.snapshots if s.id == head and s not in found]
        if not here:
            return found
        found.append(here[0])
        if here[0].parent is None:
            return found
        head = here[0].parent


def naive_iceberg(world: World) -> tuple[set[str], set[str]]:
    """Returns what Iceberg retains and which refs it drops, by its documented steps."""
    by_id = {s.id: s for s in world.snapshots}
    refs = dict(world.refs)
    if MAIN not in refs and world.current:
        refs[MAIN] = Ref(MAIN, RefKind.BRANCH, world.current)
    if world.native.older_than_ms is not None:
        default_cutoff = world.native.older_than_ms
    else:
        default_cutoff = NOW - world.native.max_snapshot_age_ms
    retained_refs = {}
    for name, ref in refs.items():
        if name == MAIN:
            retained_refs[name] = ref
        elif ref.snapshot in by_id:
            allowed = ref.max_ref_age_ms if ref.max_ref_age_ms is not None else world.native.max_ref_age_ms
            if NOW - by_id[ref.snapshot].timestamp_ms <= allowed:
                retained_refs[name] = ref
    retain = {ref.snapshot for ref in retained_refs.values()}
    referenced = set(retain)
    for ref in retained_refs.values():
        if ref.kind is RefKind.TAG:
            continue
        line = ancestors(world, ref.snapshot)
        referenced |= {s.id for s in line}
        minimum = ref.min_snapshots_to_keep
        minimum = world.native.min_snapshots_to_keep if minimum is None else minimum
        cutoff = default_cutoff if ref.max_snapshot_age_ms is None else NOW - ref.max_snapshot_age_ms
        kept: set[str] = set()
        for snapshot in line:
            if not (len(kept) < minimum or snapshot.timestamp_ms >= cutoff):
                break
            kept.add(snapshot.id)
        retain |= kept
    retain |= {s.id for s in world.snapshots if s.id not in referenced and s.timestamp_ms >= default_cutoff}
    return retain, set(refs) - set(retained_refs)


@many
@given(worlds)
def test_native_retention_equals_a_naive_iceberg(world: World) -> None:
    retain, dropped = naive_iceberg(world)
    decision = world.decide()
    # The current snapshot stays here even where main stands elsewhere, which Iceberg does not write.
    assert set(decision.kept) == retain | ({world.current} if world.current else set())
    assert set(decision.expired_refs) == dropped
