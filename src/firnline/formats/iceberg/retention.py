"""A table's own retention, which other engines go by, written so that it reaches as far as a policy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from firnline.model.snapshots import Ref, RefKind
from firnline.policy.native import LONGEST_AGE_MS
from firnline.ports.formats import Amendment, State

_AGE = "history.expire.max-snapshot-age-ms"
_COUNT = "history.expire.min-snapshots-to-keep"
_LARGEST_COUNT = 2**31 - 1


def lengthened(state: State, age_ms: int, count: int, tags: Sequence[str]) -> Amendment:
    """Returns the properties and refs that are shorter than this, as they are to be."""
    most = min(count, _LARGEST_COUNT)
    return Amendment(refs=tuple(_refs(state, age_ms, most, tags)), properties=dict(_properties(state, age_ms, most)))


def _properties(state: State, age: int, count: int) -> Iterator[tuple[str, str]]:
    if state.native.max_snapshot_age_ms < age:
        yield _AGE, str(age)
    if state.native.min_snapshots_to_keep < count:
        yield _COUNT, str(count)


def _refs(state: State, age: int, count: int, tags: Sequence[str]) -> Iterator[Ref]:
    """Yields the refs whose own fields are shorter: they beat the table's defaults."""
    for ref in state.refs.values():
        if ref.kind is RefKind.BRANCH:
            longer = replace(
                ref,
                max_snapshot_age_ms=_at_least(ref.max_snapshot_age_ms, age),
                min_snapshots_to_keep=_at_least(ref.min_snapshots_to_keep, count),
            )
        else:
            kept = any(fnmatchcase(ref.name, pattern) for pattern in tags)
            longer = replace(ref, max_ref_age_ms=LONGEST_AGE_MS) if kept else ref
        if longer != ref:
            yield longer


def _at_least(own: int | None, needed: int) -> int | None:
    return own if own is None else max(own, needed)
