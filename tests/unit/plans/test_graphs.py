"""Graphs: every snapshot is drawn once under what it follows, long ones are folded, foreign names do no harm."""

from __future__ import annotations

from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from firnline.model.drawing import DrawnSnapshot, HistoryDrawing, SnapshotFate
from firnline.plans.graph.facts import GraphLabel, GraphSnapshot, GraphTitle, LabelKind, SnapshotGraph, labelled
from firnline.plans.graph.folding import LEGIBLE, alike_rows, legible_rows
from firnline.plans.graph.text import graph_page, many_in_words
from firnline.plans.html.graph import graph_html, graph_svg

DAY = 86_400_000
BRANCH, TAG, HOLD, TIER = LabelKind.BRANCH, LabelKind.TAG, LabelKind.HOLD, LabelKind.TIER


def line(length: int, **labels: GraphLabel) -> list[GraphSnapshot]:
    """Returns snapshots in a row, of which every third stays."""
    named = {int(number.removeprefix("at_")): label for number, label in labels.items()}
    return [
        GraphSnapshot(
            str(each),
            str(each - 1) if each else None,
            each * DAY,
            SnapshotFate.GOES if each % 3 else SnapshotFate.STAYS,
            (named[each],) if each in named else (),
        )
        for each in range(length)
    ]


def graph(before: list[GraphSnapshot]) -> SnapshotGraph:
    left = tuple(each for each in before if each.fate is not SnapshotFate.GOES)
    return SnapshotGraph("lake.a.t", "iceberg", 0, "keep all", tuple(before), left, "gone")


@st.composite
def histories(draw: st.DrawFn) -> list[GraphSnapshot]:
    """Returns snapshots with any parents: some that are missing, some that loop."""
    count = draw(st.integers(1, 40))
    parents = draw(st.lists(st.integers(-2, count + 1), min_size=count, max_size=count))
    fates = draw(st.lists(st.sampled_from([SnapshotFate.GOES, SnapshotFate.STAYS]), min_size=count, max_size=count))
    named = draw(st.sets(st.integers(0, count - 1), max_size=5))
    return [
        GraphSnapshot(str(each), str(parent), each, fate, (GraphLabel(TAG, f"t{each}"),) if each in named else ())
        for each, (parent, fate) in enumerate(zip(parents, fates, strict=True))
    ]


@given(histories(), st.integers(1, 20))
def test_every_snapshot_is_in_one_row_however_it_is_folded(snapshots: list[GraphSnapshot], most: int) -> None:
    for rows in (alike_rows(snapshots), legible_rows(snapshots, most)):
        shown = [each.id for row in rows for each in row.snapshots]
        assert sorted(shown) == sorted(each.id for each in snapshots)
        for number, row in enumerate(rows):
            first = row.snapshots[0]
            assert row.under is None or (row.under < number and rows[row.under].snapshots[-1].id == first.parent)
            inner = zip(row.snapshots, row.snapshots[1:], strict=False)
            assert all(later.parent == earlier.id for earlier, later in inner)


def test_two_thousand_snapshots_stay_legible() -> None:
    found = graph(line(2_000, at_700=GraphLabel(HOLD, "audit by ann"), at_1999=GraphLabel(BRANCH, "main")))
    rows = legible_rows(found.before)
    assert len(rows) <= LEGIBLE
    assert len(alike_rows(found.before)) > 1_000
    text = graph_page(found).to_text()
    assert "hold audit by ann" in text
    assert ": 698 more: 232 stay, 466 go" in text
    folded = sum(len(row.snapshots) for row in rows)
    assert folded == 2_000


def test_a_tag_at_every_commit_is_folded_too() -> None:
    snapshots = line(300, **{f"at_{each}": GraphLabel(TAG, f"v{each}") for each in range(300)})
    assert len(legible_rows(snapshots)) < LEGIBLE
    assert "297 tags" in graph_page(graph(snapshots)).to_text()


def test_what_goes_to_a_tier_is_counted_where_it_is_folded() -> None:
    some = [GraphSnapshot(str(each), None, 0, SnapshotFate.GOES, (GraphLabel(TIER, "cold"),)) for each in range(3)]
    assert many_in_words(some) == "3 more: 3 go, 3 to cold"


def test_labels_that_go_or_are_made_are_on_one_side_alone() -> None:
    drawn = DrawnSnapshot("1", None, 0, SnapshotFate.STAYS)
    labels = {"1": [GraphLabel(TAG, "new", made=True), GraphLabel(TAG, "old", goes=True), GraphLabel(BRANCH, "main")]}
    found = labelled(GraphTitle("t", "f", 0, "p"), HistoryDrawing((drawn,), (drawn,), "gone"), labels, {"1": ("why",)})
    assert [label.name for label in found.before[0].labels] == ["main", "old"]
    assert [label.name for label in found.after[0].labels] == ["main", "new"]
    assert found.to_json()["before"][0]["reasons"] == ["why"]


def test_a_tag_named_script_is_a_text() -> None:
    evil = '<script>alert(1)</script>"\x1b[31m'
    markup = graph_html(graph(line(4, at_1=GraphLabel(TAG, evil), at_3=GraphLabel(BRANCH, "main"))))
    assert "<script" not in markup
    assert "\x1b" not in markup
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in markup


def test_the_svg_is_well_formed_and_says_every_row() -> None:
    snapshots = line(200, at_100=GraphLabel(TAG, "v1"), at_199=GraphLabel(BRANCH, "main"))
    svg = ElementTree.fromstring(graph_svg("before", snapshots, lambda name: f"/why?{name}&x"))
    rows = legible_rows(snapshots)
    assert len([each for each in svg.iter() if each.tag == "text"]) == len(rows)
    assert svg.get("role") == "group", "what is in a picture cannot be reached"
    texts = ["".join(each.itertext()) for each in svg.iter("text")]
    assert any("tag v1" in each for each in texts)
    assert len(list(svg.iter("a"))) == len([row for row in rows if not row.is_folded])
