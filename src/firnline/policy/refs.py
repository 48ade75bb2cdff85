"""Which branches and tags stay. Comes first: a ref that expired protects nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from firnline.errors import UnreadableMetadata
from firnline.model.graph import Graph
from firnline.model.snapshots import MAIN, Ref, RefKind, SnapshotId
from firnline.policy.native import NativeRetention, cutoff_of
from firnline.policy.reasons import Judgement, Reason


@dataclass(frozen=True, slots=True)
class Case:
    """What a decision is about: one table's history, its refs and the instant that counts as now."""

    graph: Graph
    refs: Mapping[str, Ref]
    current: SnapshotId | None
    native: NativeRetention
    now_ms: int

    @staticmethod
    def of(
        graph: Graph,
        refs: Mapping[str, Ref],
        current: SnapshotId | None,
        native: NativeRetention,
        now_ms: int,
    ) -> Case:
        """Returns the case, with the `main` that old tables do not write down.

        Raises UnreadableMetadata where `main` or the current snapshot is not there: such a history is
        incomplete, so nobody can say what it needs.
        """
        if current is not None and MAIN not in refs:
            refs = {MAIN: Ref(MAIN, RefKind.BRANCH, current), **refs}
        if MAIN in refs:
            _need(graph, refs[MAIN].snapshot, "branch main")
        if current is not None:
            _need(graph, current, "the current snapshot")
        return Case(graph, refs, current, native, now_ms)

    def ref_overdue_ms(self, ref: Ref) -> int:
        """Returns for how long a ref has outlived its age; zero or less: it stays."""
        limit = self.native.max_ref_age_ms if ref.max_ref_age_ms is None else ref.max_ref_age_ms
        return cutoff_of(limit, self.now_ms) - self.graph[ref.snapshot].timestamp_ms


def _need(graph: Graph, snapshot: SnapshotId, who: str) -> None:
    if snapshot not in graph:
        raise UnreadableMetadata(
            f"{who} points at snapshot {snapshot}, which the table does not have",
            hint="the metadata is damaged or incomplete; nothing can be decided from it",
        )


@dataclass(frozen=True, slots=True)
class StandingRefs:
    """The refs that stay, main first, then by name; and the names of those that go."""

    kept: tuple[Ref, ...]
    expired: tuple[str, ...]

    @property
    def branches(self) -> Iterator[Ref]:
        return (ref for ref in self.kept if ref.kind is RefKind.BRANCH)

    @property
    def tags(self) -> Iterator[Ref]:
        return (ref for ref in self.kept if ref.kind is RefKind.TAG)


def judge_refs(case: Case, tag_patterns: Iterable[str] = ()) -> StandingRefs:
    """Returns which refs stay: main, those whose head is young enough, and tags that a pattern names."""
    patterns = tuple(tag_patterns)
    names = sorted(case.refs, key=lambda name: (name != MAIN, name))
    kept = tuple(case.refs[name] for name in names if _stays(case, case.refs[name], patterns))
    standing = {ref.name for ref in kept}
    return StandingRefs(kept, tuple(name for name in names if name not in standing))


def _stays(case: Case, ref: Ref, patterns: tuple[str, ...]) -> bool:
    if ref.name == MAIN:
        return True
    if ref.snapshot not in case.graph:
        return False
    return case.ref_overdue_ms(ref) <= 0 or any(matching(ref, patterns))


def matching(ref: Ref, patterns: Iterable[str]) -> Iterator[str]:
    """Yields the patterns that name this tag; a branch is named by none."""
    if ref.kind is RefKind.TAG:
        yield from (pattern for pattern in patterns if fnmatchcase(ref.name, pattern))


def keep_heads(case: Case, refs: StandingRefs) -> Iterator[Judgement]:
    """Yields the current snapshot and the head of every ref that stays by its own age."""
    if case.current is not None:
        yield case.current, Reason("current")
    for ref in refs.branches:
        yield ref.snapshot, Reason("branch head", ref.name)
    for ref in refs.tags:
        if ref.name == MAIN or case.ref_overdue_ms(ref) <= 0:
            yield ref.snapshot, Reason("tag", ref.name)


def keep_tags(refs: StandingRefs, patterns: Iterable[str]) -> Iterator[Judgement]:
    """Yields the snapshots of tags that a pattern of the policy names."""
    wanted = tuple(patterns)
    for ref in refs.tags:
        for pattern in matching(ref, wanted):
            yield ref.snapshot, Reason("tag", pattern)
