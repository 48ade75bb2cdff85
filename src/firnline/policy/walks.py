"""The formats' own retention. Iceberg's is a walk down each branch that stops at the first snapshot it does not keep;
Paimon's an unbroken range of numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from firnline.model.snapshots import Ref, Snapshot, SnapshotId
from firnline.policy.native import Range, cutoff_of, newer_than
from firnline.policy.reasons import Judgement, Reason
from firnline.policy.refs import Case, StandingRefs


@dataclass(frozen=True, slots=True)
class Walk:
    """What a branch keeps: `at_least` snapshots, then those not before `cutoff_ms`, without a gap.

    A `cutoff_ms` of None keeps nothing by age. Whatever is below the first snapshot that goes, goes too.
    """

    branch: str
    head: SnapshotId
    at_least: int
    cutoff_ms: int | None
    age_text: str

    def young(self, snapshot: Snapshot) -> bool:
        return self.cutoff_ms is not None and snapshot.timestamp_ms >= self.cutoff_ms

    def judge(self, case: Case) -> Iterator[Judgement]:
        by_age = Reason("ref", f"{self.branch}: {self.age_text}")
        for number, snapshot in enumerate(case.graph.lineage(self.head), 1):
            young = self.young(snapshot)
            if number <= self.at_least:
                yield snapshot.id, Reason("ref", f"{self.branch}: {number} of {self.at_least}")
            elif not young:
                return
            if young:
                yield snapshot.id, by_age


def native_walk(case: Case, ref: Ref) -> Walk:
    """Returns the walk of a branch: what the ref carries itself, else the table's defaults."""
    own, native = own_walk(case, ref), case.native
    at_least = native.min_snapshots_to_keep if ref.min_snapshots_to_keep is None else own.at_least
    if ref.max_snapshot_age_ms is not None:
        return Walk(ref.name, ref.snapshot, at_least, own.cutoff_ms, own.age_text)
    return Walk(ref.name, ref.snapshot, at_least, native.cutoff(case.now_ms), native.age_text())


def own_walk(case: Case, ref: Ref) -> Walk:
    """Returns the walk by what the ref carries itself and nothing else."""
    at_least, age = ref.min_snapshots_to_keep or 0, ref.max_snapshot_age_ms
    if age is None:
        return Walk(ref.name, ref.snapshot, at_least, None, "")
    return Walk(ref.name, ref.snapshot, at_least, cutoff_of(age, case.now_ms), newer_than(age))


def referenced(case: Case, refs: StandingRefs) -> set[SnapshotId]:
    """Returns the ancestors of branches that stay, as Iceberg sees them, and the heads of tags that stay."""
    found: set[SnapshotId] = set()
    for ref in refs.branches:
        for snapshot in case.graph.lineage(ref.snapshot):
            if snapshot.id in found:
                break
            found.add(snapshot.id)
    return found.union(ref.snapshot for ref in refs.tags)


def keep_unreferenced(case: Case, refs: StandingRefs) -> Iterator[Judgement]:
    """Yields what no ref reaches (staged, left by a rollback, below a hole) and the default age keeps.

    Where branches keep ranges there is no such snapshot: nothing but a tag holds what is in none.
    """
    if case.native.ranges is not None:
        return
    reached, cutoff = referenced(case, refs), case.native.cutoff(case.now_ms)
    reason = Reason("unreferenced", f", {case.native.age_text()}")
    for snapshot in case.graph:
        if snapshot.timestamp_ms >= cutoff and snapshot.id not in reached:
            yield snapshot.id, reason


def keep_natively(case: Case, refs: StandingRefs) -> Iterator[Judgement]:
    """Yields what the format itself keeps by the table's properties and by what its refs carry."""
    for ref in refs.branches:
        yield from native_walk(case, ref).judge(case) if case.native.ranges is None else in_range(case, ref)
    yield from keep_unreferenced(case, refs)


@dataclass(frozen=True, slots=True)
class Numbered:
    """A branch's range, with its snapshots by number and what counts as young."""

    range: Range
    snapshots: Mapping[int, Snapshot]
    times: Mapping[int, int]
    cutoff_ms: int
    age_text: str

    @property
    def first_kept(self) -> int:
        return self.range.first_kept(self.times, self.cutoff_ms)


def numbered(case: Case, ref: Ref) -> Numbered | None:
    """Returns the range of a branch; None where the branch has none, so that all of it stays."""
    rule = (case.native.ranges or {}).get(ref.name)
    if rule is None:
        return None
    snapshots = {each.number: each for each in case.graph.lineage(ref.snapshot) if each.number is not None}
    times = {number: each.timestamp_ms for number, each in snapshots.items()}
    said = case.native.older_than_ms
    cutoff = cutoff_of(rule.age_ms, case.now_ms) if said is None else said
    age_text = newer_than(rule.age_ms) if said is None else case.native.age_text()
    return Numbered(rule, snapshots, times, cutoff, age_text)


def in_range(case: Case, ref: Ref) -> Iterator[Judgement]:
    """Yields what a branch's own range keeps."""
    found = numbered(case, ref)
    if found is None:
        yield from ((each.id, Reason("ref", f"{ref.name}: all of it")) for each in case.graph.lineage(ref.snapshot))
        return
    first = found.first_kept
    for number, snapshot in found.snapshots.items():
        if number >= first:
            said = found.range.why(number, found.times, found.cutoff_ms, found.age_text)
            yield snapshot.id, Reason("ref", f"{ref.name}: {said}")
