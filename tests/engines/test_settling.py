"""The end of a walk on Spark, without Spark: however rows are cut into batches, each table gets the plain answer."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from firnline.errors import UnreadableMetadata
from firnline.model.spans import numbers
from firnline.ports.engines import Territory
from firnline.spark.settling import OTHERS, UNREADABLE, Settling
from firnline.spark.telling import told
from firnline.spark.travelling import FOLDING, KINDS, PLACE_BITS
from firnline.walking.axis import Axis
from firnline.walking.verdicts import ELSEWHERE, KEPT, VERDICTS, VICTIM

OWNERS, RELEASED, OTHERS_FROM = 8, 3, 6
STRETCH = OWNERS + 1
AXIS = Axis(*(numbers([first + at, first + STRETCH + at]) for first, at in ((0, 0), (0, RELEASED), (0, OTHERS_FROM))))
"""Two tables, each with owners that are kept, released, and of others."""

SPANS = st.integers(0, OWNERS - 1).flatmap(lambda start: st.tuples(st.just(start), st.integers(start + 1, OWNERS)))
SAID = st.tuples(st.integers(0, 1), st.integers(0, 9), st.integers(0, 1), st.sampled_from((1, 1, -1)), SPANS)
"""A table, a file, a fold, whether it is added or taken away, and by which owners that is read."""

Said = tuple[int, int, int, int, tuple[int, int]]
SORTED = pa.schema([field for field in FOLDING if field.name != "part"])
DATA = KINDS.to_pylist().index("data")


def travelling(walk: int, file: int, fold: int, op: int, span: tuple[int, int]) -> dict[str, Any]:
    """A row as it travels. Two files share a place, as two names may share a hash."""
    adds = {"size": file, "kind": DATA} if op > 0 else {"size": None, "kind": None}
    spans = [walk * STRETCH + end for end in span]
    nothing = {"key": None, "opens": False, "error": None, "reach": 0}
    place = walk << PLACE_BITS | file // 2
    return {**nothing, **adds, "identity": name(file), "fold": fold, "op": op, "spans": spans, "place": place}


def name(file: int) -> str:
    return f"file:///t/{file}"


def settled(rows: list[dict[str, Any]], cut: int) -> list[dict[str, Any]]:
    rows = sorted(rows, key=lambda row: row["place"])
    batches = [pa.RecordBatch.from_pylist(rows[at : at + cut], schema=SORTED) for at in range(0, len(rows), cut)]
    return [row for batch in Settling(AXIS, [Territory(None)] * 2)(batches) for row in batch.to_pylist()]


def expected(said: list[Said]) -> set[tuple[int, str, int]]:
    """Counted owner by owner."""
    counts: Counter[tuple[int, int, int, int]] = Counter()
    for walk, file, fold, op, (start, end) in said:
        counts.update({(walk, file, fold, owner): op for owner in range(start, end)})
    owners: dict[tuple[int, int], set[int]] = {}
    for (walk, file, _, owner), count in counts.items():
        if count > 0:
            owners.setdefault((walk, file), set()).add(owner)
    return {(walk, name(file), verdict_of(by)) for (walk, file), by in owners.items()}


def verdict_of(owners: set[int]) -> int:
    if min(owners) < RELEASED:
        return VERDICTS.index(KEPT)
    if min(owners) >= OTHERS_FROM:
        return OTHERS
    return VERDICTS.index(ELSEWHERE if max(owners) >= OTHERS_FROM else VICTIM)


@settings(deadline=None)
@given(st.lists(SAID, min_size=1, max_size=40), st.integers(1, 9))
def test_it_is_the_plain_count_however_rows_are_cut(said: list[Said], cut: int) -> None:
    found = settled([travelling(*each) for each in said], cut)
    assert len(found) == len({(row["walk"], row["identity"]) for row in found})
    assert {(row["walk"], row["identity"], row["verdict"]) for row in found} == expected(said)
    assert all(row["size"] == int(row["identity"].rpartition("/")[2]) and row["kind"] == DATA for row in found)


def test_what_could_not_be_read_or_was_not_opened_is_never_garbage() -> None:
    damaged = {**travelling(0, 1, 0, 1, (5, 6)), "error": told(UnreadableMetadata("torn", hint="none"))}
    late = {**travelling(0, 2, 0, 1, (5, 6)), "opens": True}
    found = settled([damaged, late, travelling(0, 3, 0, 1, (5, 6))], 2)
    assert [(row["identity"], row["verdict"], bool(row["error"])) for row in found] == [
        (name(1), UNREADABLE, True),
        (name(2), UNREADABLE, True),
        (name(3), VERDICTS.index(VICTIM), False),
    ]
