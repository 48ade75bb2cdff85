"""The history by which Icechunk's design explains expiry, with its picture after every ref."""

from __future__ import annotations

from itertools import permutations

import pytest

from firnline.formats.icechunk.expiring.ancestry import survivors_since
from firnline.formats.icechunk.expiring.expressing import ref_lines, refusals, threshold_for
from firnline.formats.icechunk.expiring.rewriting import Manner, rewritten
from firnline.model.snapshots import RefKind
from firnline.plans.graph.text import LEGEND, WIDTH

from .histories import (
    SAMPLE_PARENTS,
    SAMPLE_REFS,
    SAMPLE_THRESHOLD,
    after_ref,
    drawn_lines,
    history_of,
    lines_of,
    sample,
)

PICTURES = (
    # after: parents that differ from the beginning, snapshots that hang on no branch, and those that no ref leads to
    ("main", {12: 0}, {4, 5}, set()),
    ("develop", {12: 0, 10: 0}, {4, 5}, set()),
    ("test", {12: 0, 10: 0, 9: 0}, {4, 5}, set()),
    ("qa", {12: 0, 10: 0, 9: 0, 8: 0}, {1, 2, 3, 4, 5, 6, 7}, {6, 7}),
    ("tag1", {12: 0, 10: 0, 9: 0, 8: 0}, {1, 2, 3, 4, 5, 6, 7}, {6, 7}),
    ("tag2", {12: 0, 10: 0, 9: 0, 8: 0}, {1, 2, 3, 4, 5, 6, 7}, {6, 7}),
)


def names(numbers: set[int]) -> set[str]:
    return set(map(str, numbers))


def test_every_picture_on_the_way() -> None:
    history = sample()
    survivors = survivors_since(history, SAMPLE_THRESHOLD)
    assert survivors == names(set(range(8, 15)))
    for ref, (name, edits, branchless, dangling) in zip(SAMPLE_REFS, PICTURES, strict=True):
        assert ref.name == name
        # Refs that were not reached yet do not count for edits, but for what is reachable.
        only = history.without(refs=[other for other in history.refs if other != ref])
        step = rewritten(only, survivors).parents
        history = history.edited(step)
        assert history == history_of({**SAMPLE_PARENTS, **edits}, SAMPLE_REFS)
        tags = [each for each in SAMPLE_REFS if each.kind is RefKind.TAG]
        assert history.snapshots.keys() - history.without(refs=tags).reachable() == names(branchless)
        assert history.snapshots.keys() - history.reachable() == names(dangling)


def test_all_at_once_is_the_last_picture() -> None:
    found = rewritten(sample(), survivors_since(sample(), SAMPLE_THRESHOLD))
    assert found.parents == {"12": "0", "10": "0", "9": "0", "8": "0"}
    assert found.after == history_of({**SAMPLE_PARENTS, **PICTURES[-1][1]}, SAMPLE_REFS)
    assert found.dangling == found.released == {"6", "7"}
    assert [ref.name for ref in found.expired_refs] == ["tag1", "tag2"]
    assert found.deleted == ()
    assert lines_of(found.after) == {
        ("branch", "main"): ["14", "13", "12", "0"],
        ("branch", "develop"): ["11", "10", "0"],
        ("branch", "test"): ["9", "0"],
        ("branch", "qa"): ["8", "0"],
        ("tag", "tag1"): ["3", "2", "1", "0"],
        ("tag", "tag2"): ["5", "4", "2", "1", "0"],
    }


def test_five_more_go_with_the_expired_tags() -> None:
    survivors = survivors_since(sample(), SAMPLE_THRESHOLD)
    kept, deleted = rewritten(sample(), survivors), rewritten(sample(), survivors, delete={RefKind.TAG})
    assert deleted.dangling - kept.dangling == {"1", "2", "3", "4", "5"}
    assert [ref.name for ref in deleted.deleted] == ["tag1", "tag2"]
    assert rewritten(sample(), survivors, delete={RefKind.BRANCH}).after == kept.after


def test_any_of_720_orders_ends_in_the_same_history() -> None:
    survivors = survivors_since(sample(), SAMPLE_THRESHOLD)
    expected = rewritten(sample(), survivors).after
    for order in permutations(SAMPLE_REFS):
        history = sample()
        for ref in order:
            history = after_ref(history, ref, survivors)
        assert history == expected


def test_a_threshold_says_it_and_every_line_is_a_young_end() -> None:
    survivors = survivors_since(sample(), SAMPLE_THRESHOLD)
    lines = ref_lines(sample(), survivors)
    assert all(line.is_young_end for line in lines)
    assert [line.ref.name for line in lines if line.expired] == ["tag1", "tag2"]
    assert refusals(sample(), survivors) == []
    assert threshold_for(sample(), survivors) == SAMPLE_THRESHOLD


@pytest.mark.parametrize(
    ("manner", "tag2", "released"),
    [
        (Manner.DESIGNED, ["5", "4", "2", "1", "0"], {"6", "7"}),
        (Manner.VERSION_1, ["5", "0"], {"1", "2", "4", "6", "7"}),
        (Manner.VERSION_2, ["5", "0"], {"1", "2", "4", "6", "7"}),
    ],
)
def test_the_library_shortens_what_expired_tags_see_and_the_design_does_not(
    manner: Manner, tag2: list[str], released: set[str]
) -> None:
    found = rewritten(sample(), survivors_since(sample(), SAMPLE_THRESHOLD), manner)
    assert lines_of(found.after)["tag", "tag2"] == tag2
    assert found.released == released


BEFORE = """\
o 0 1970-01-01 00:00
x 1 1970-01-01 00:01
x 2 1970-01-01 00:02
|-x 4 1970-01-01 00:04
| x 5 1970-01-01 00:05 tag tag2 (goes)
| ^ 12 1970-01-01 00:12
| o 13 1970-01-01 00:13
| o 14 1970-01-01 00:14 main
x 3 1970-01-01 00:03 tag tag1 (goes)
x 6 1970-01-01 00:06
|-^ 10 1970-01-01 00:10
| o 11 1970-01-01 00:11 develop
x 7 1970-01-01 00:07
|-^ 8 1970-01-01 00:08 qa
^ 9 1970-01-01 00:09 test
"""
AFTER = """\
o 0 1970-01-01 00:00
|-^ 8 1970-01-01 00:08 qa
|-^ 9 1970-01-01 00:09 test
|-^ 10 1970-01-01 00:10
| o 11 1970-01-01 00:11 develop
^ 12 1970-01-01 00:12
o 13 1970-01-01 00:13
o 14 1970-01-01 00:14 main
7 snapshots no ref leads to
"""


def test_its_drawing_with_the_expired_tags_deleted() -> None:
    survivors = survivors_since(sample(), SAMPLE_THRESHOLD)
    found = drawn_lines(rewritten(sample(), survivors, delete={RefKind.TAG}))
    assert found.before == tuple(BEFORE.splitlines())
    assert found.after == tuple(AFTER.splitlines())
    assert max(map(len, (*found.before, *found.after, LEGEND))) <= WIDTH


def test_its_drawing_tells_what_only_a_ref_keeps() -> None:
    found = drawn_lines(rewritten(sample(), survivors_since(sample(), SAMPLE_THRESHOLD)))
    assert [line for line in found.before if "x" in line] == ["x 6 1970-01-01 00:06", "x 7 1970-01-01 00:07"]
    assert [line for line in found.after if "tag" in line] == [
        "|-. 3 1970-01-01 00:03 tag tag1",
        ". 5 1970-01-01 00:05 tag tag2",
    ]
