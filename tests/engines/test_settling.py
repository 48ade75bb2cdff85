"""The end of a walk on Spark, without Spark: however rows are cut into batches, each table gets the plain answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given, settings
from hypothesis import strategies as st

from firnline.errors import UnreadableMetadata
from firnline.model.spans import numbers
from firnline.ports.engines import Territory
from firnline.spark.judged import OTHERS, UNREADABLE, all_folders, each_kind
from firnline.spark.packets import LOST, packed, packets
from firnline.spark.settling import Settling
from firnline.spark.telling import error_of, told, told_of
from firnline.spark.travelling import FOLDING, KINDS, PLAIN
from firnline.walking.axis import BY_RELEASED, Axis
from firnline.walking.opening import come_too_late
from firnline.walking.verdicts import ELSEWHERE, KEPT, VERDICTS, VICTIM
from harness.lanes import by_lane

COUNT = by_lane(40, 40, 100)
OWNERS, RELEASED, OTHERS_FROM = 8, 3, 6
STRETCH = OWNERS + 1
AXIS = Axis(*(numbers([first + at, first + STRETCH + at]) for first, at in ((0, 0), (0, RELEASED), (0, OTHERS_FROM))))
"""Two tables, each with owners that are kept, released, and of others."""

SPANS = st.integers(0, OWNERS - 1).flatmap(lambda start: st.tuples(st.just(start), st.integers(start + 1, OWNERS)))
SAID = st.tuples(st.integers(0, 1), st.integers(0, 9), st.integers(0, 1), st.sampled_from((1, 1, -1)), SPANS)
"""A table, a file, a fold, whether it is added or taken away, and by which owners that is read."""

Said = tuple[int, int, int, int, tuple[int, int]]
DATA = KINDS.to_pylist().index("data")


def travelling(walk: int, file: int, fold: int, op: int, span: tuple[int, int]) -> dict[str, Any]:
    """A row as it travels."""
    adds = {"size": file, "kind": DATA} if op > 0 else {"size": None, "kind": None}
    spans = [walk * STRETCH + end for end in span]
    nothing = {"key": None, "opens": False, "reach": 0}
    return {**nothing, **adds, "identity": name(file), "fold": fold, "op": op, "spans": spans, "walk": walk}


def name(file: int) -> str:
    return f"file:///t/{file}"


def slice_of(row: dict[str, Any]) -> int:
    """All rows of a file go to one slice, and a slice has several."""
    return int(row["identity"].rpartition("/")[2]) % 3


def settled(rows: list[dict[str, Any]], cut: int, lost: dict[int, str] | None = None) -> list[dict[str, Any]]:
    """What is said of files, and of walks; rows come in packets of at most `cut`, and those in batches of two."""
    came = [(LOST, told_of(lost))] if lost else []
    for number in range(3):
        of = [row for row in rows if slice_of(row) == number]
        some = (of[at : at + cut] for at in range(0, len(of), cut))
        came += [(number, packed(pa.RecordBatch.from_pylist(each, schema=FOLDING))) for each in some]
    pairs = (came[at : at + 2] for at in range(0, len(came), 2))
    batches = (packets([0] * len(pair), *zip(*pair, strict=True)) for pair in pairs)
    return [row for batch in Settling(AXIS, [Territory(None)] * 2)(batches) for row in in_rows(batch)]


def in_rows(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    for packet, one in zip(batch.to_pylist(), each_kind(batch), strict=True):
        said = {"walk": packet["walk"], "verdict": packet["verdict"], "kind": packet["kind"], "error": packet["error"]}
        files = one.files.to_pylist()
        assert packet["count"] == len(files)
        assert not files or packet["bytes"] == sum(file["size"] for file in files)
        yield from ({**said, **file} for file in files or ([{"identity": None}] if packet["error"] else []))


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


@settings(max_examples=COUNT, deadline=None)
@given(st.lists(SAID, min_size=1, max_size=40), st.integers(1, 9))
def test_it_is_the_plain_count_however_rows_are_cut(said: list[Said], cut: int) -> None:
    found = settled([travelling(*each) for each in said], cut)
    assert len(found) == len({(row["walk"], row["identity"]) for row in found})
    assert {(row["walk"], row["identity"], row["verdict"]) for row in found} == expected(said)
    assert all(row["size"] == int(row["identity"].rpartition("/")[2]) and row["kind"] == DATA for row in found)


def test_what_could_not_be_read_or_was_not_opened_is_never_garbage() -> None:
    late = {**travelling(0, 2, 0, 1, (5, 6)), "opens": True}
    found = settled([late, travelling(1, 3, 0, 1, (5, 6))], 2, {1: told(UnreadableMetadata("torn", hint="none"))})
    ends = {row["walk"]: error_of(row["error"]).message for row in found if row["verdict"] == UNREADABLE}
    assert ends == {0: come_too_late().message, 1: "torn"}


def test_what_could_not_be_read_is_told_before_any_file() -> None:
    """Who asks for a few files reads no further than those: without the units that are lost they seem to be victims."""
    torn = told(UnreadableMetadata("torn", hint="none"))
    found = settled([travelling(1, 3, 0, 1, (5, 6))], 2, {1: torn})
    assert [row["verdict"] for row in found] == [UNREADABLE, VERDICTS.index(VICTIM)]


@settings(max_examples=COUNT, deadline=None)
@given(st.sets(st.integers(0, 4)), st.sets(st.integers(0, 4)))
def test_files_of_formats_that_fold_and_that_do_not_meet(own: set[int], theirs: set[int]) -> None:
    """A table of one kind and the others that need its files may be walked in two passes."""
    plain = [{**travelling(0, file, 0, 1, (5, 6)), "reach": BY_RELEASED} for file in own]
    said = [(0, packed(pa.RecordBatch.from_pylist(plain, schema=PLAIN)))] if plain else []
    folding = [travelling(0, file, 0, 1, (6, 7)) for file in theirs]
    said += [(0, packed(pa.RecordBatch.from_pylist(folding, schema=FOLDING)))] if folding else []
    for came in (said, said[::-1]):
        batches = (packets([0], [slice_], [data]) for slice_, data in came)
        found = [row for batch in Settling(AXIS, [Territory(None)] * 2)(batches) for row in in_rows(batch)]
        verdicts = {row["identity"]: row["verdict"] for row in found}
        expect = {name(file): OTHERS for file in theirs - own} | {name(file): VERDICTS.index(VICTIM) for file in own}
        assert verdicts == expect | {name(file): VERDICTS.index(ELSEWHERE) for file in own & theirs}


def test_folders_that_are_too_many_to_come_with_sums_come_by_themselves() -> None:
    rows = [{**travelling(0, 3, 0, 1, (5, 6)), "identity": f"file:///t/{at % 99}/{at * 3}"} for at in range(200)]
    few = [{**travelling(1, 3, 0, 1, (5, 6)), "identity": f"file:///t/{at % 9}/{at * 3}"} for at in range(20)]
    batch = packets([0, 0], [0, 0], [packed(pa.RecordBatch.from_pylist(each, schema=FOLDING)) for each in (rows, few)])
    (judged, _) = Settling(AXIS, [Territory(None)] * 2)([batch])
    many, of_few = sorted(judged.to_pylist(), key=lambda packet: packet["walk"])
    assert many["folders"] is None
    assert sorted(of_few["folders"]) == [f"file:///t/{at}/" for at in range(9)]
    (brought,) = all_folders([judged.filter(pc.equal(judged.column("walk"), 0))])
    assert sorted(brought.column("folder").to_pylist()) == sorted(f"file:///t/{at}/" for at in range(99))
