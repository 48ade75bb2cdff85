"""The model of a commit without compare-and-swap holds as designed, and fails without each of its rules."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .tlc import check, configured

FULL = os.environ.get("FIRNLINE_FULL") == "1"
MODEL = "Paimon"


def words(*names: str) -> str:
    """A TLA+ set of strings."""
    return "{" + ", ".join(f'"{name}"' for name in names) + "}"


def bound(*kinds: str, **budgets: int | str) -> dict[str, str]:
    """Constants of a check, with what Java's users do."""
    return {"Kinds": words(*kinds), **{name: str(value) for name, value in budgets.items()}}


PROOFS = {
    "crashes": bound(Writes=1, Undos=1, Faults=2),
    "rollback": bound("rollback", Deeds=1, Writes=1),
    "rollback and crash": bound("rollback", Deeds=1, Faults=1),
    "rollback and undo": bound("rollback", Deeds=1, Undos=1, Faults=1),
    "rollback, stale hint": bound("rollback", Deeds=1, Faults=1, Stale=1),
    "to a tag below the range": bound("totag", Deeds=1, Writes=1, Low=2, Top=4),
    "to a tag of ours": bound("totag", Deeds=1, Writes=1, Undos=1),
    "fast-forward": bound("forward", Deeds=1, Writes=1, HasBranch="TRUE"),
    "the writers' expiry": bound("expire", Deeds=1, Undos=1),
    "tag": bound("tag", Deeds=1, Faults=1, Undos=1, HasBranch="TRUE"),
    "reader": bound("reader", Marks=1, Faults=1),
    "hold": bound("hold", "expire", Marks=1, Deeds=1, Faults=1),
}
LARGE = {
    "to a tag and crash": bound("totag", Deeds=1, Writes=1, Faults=1, Low=2, Top=4),
    "fast-forward and crash": bound("forward", Deeds=1, Writes=1, Faults=1, HasBranch="TRUE"),
    "the writers' expiry and undo": bound("expire", Deeds=1, Writes=1, Undos=1),
    "reader and expiry": bound("reader", "expire", Marks=1, Deeds=1, Faults=1),
    "rollback, large": bound("rollback", Deeds=1, Writes=1, Faults=1, Undos=1),
    "stale hint, large": bound("rollback", Deeds=1, Writes=1, Faults=1, Stale=1),
    "to a tag, large": bound("totag", Deeds=1, Writes=2, Faults=1, Low=2, Top=4),
    "to a tag of ours, large": bound("totag", "rollback", Deeds=1, Writes=1, Undos=1, Faults=1),
    "fast-forward, large": bound("forward", Deeds=1, Writes=1, Faults=1, Undos=1, HasBranch="TRUE"),
    "the writers' expiry, large": bound("expire", Deeds=1, Writes=1, Faults=1, Undos=1),
    "reader, large": bound("reader", "expire", Marks=1, Deeds=1, Writes=1, Faults=1),
    "hold, large": bound("hold", "expire", Marks=1, Deeds=1, Writes=1, Faults=1),
    "two deeds and crash": bound("rollback", "totag", "expire", "tag", Deeds=2, Faults=1),
    "two deeds and undo": bound("rollback", "totag", "expire", "tag", Deeds=2, Undos=1),
    "numbers given again": bound("rollback", "totag", Deeds=1, Writes=2, Faults=1, Undos=1),
    "four snapshots": bound("rollback", "totag", "expire", "tag", Deeds=1, Writes=1, Faults=1, Undos=1, Top=4),
    "two crashes": bound("rollback", "expire", Deeds=1, Writes=1, Faults=2, Undos=2),
    "marks": bound("reader", "hold", "expire", "rollback", Marks=2, Deeds=1, Faults=1, Undos=1),
    "all": bound("rollback", "totag", "forward", "expire", "tag", "reader", "hold", Deeds=1, Marks=1, Undos=1, Faults=1,
                 HasBranch="TRUE"),
}  # fmt: skip

# Rules that are switched off → the invariant that breaks, and what must be in the way for it to break.
Mutation = tuple[tuple[str, ...], str, dict[str, str]]
MUTATIONS: list[Mutation] = [
    (("record",), "Accounted", bound(Faults=1)),
    (("begun",), "Accounted", bound(Faults=1)),
    (("fits",), "ReadersServed", bound("reader", Marks=1)),
    (("lease",), "Accounted", bound(Faults=1, Undos=1)),
    (("tagfirst",), "Accounted", bound()),
    (("tagwhole",), "TagsWhole", bound("expire", Deeds=1)),
    (("lowest",), "Unbroken", bound()),
    (("highest",), "Unbroken", bound(Undos=1)),
    (("exact", "same"), "Accounted", bound("rollback", Deeds=1, Writes=2)),
    (("stays",), "NewestStays", bound("rollback", Deeds=1)),
    (("same",), "HintNotAhead", bound("rollback", Deeds=1, Writes=2)),
    (("overtaken", "whole"), "BroughtBackWhole", bound("expire", Deeds=1, Writes=1)),
    (("hintlast",), "HintNotAhead", bound()),
    (("hintbefore",), "HintNotAhead", bound(Undos=1)),
    (("hintlook",), "HintNotAhead", bound("totag", Deeds=1, Writes=2)),
    (("hintback",), "HintNotAhead", bound("totag", Deeds=1, Writes=1, Low=2, Top=4)),
    (("latest",), "JavaFindsNewest", bound(Stale=1)),
    (("latestloop", "latestend"), "JavaFindsNewest", bound("rollback", Deeds=1, Stale=1)),
    (("latestend",), "JavaFindsNewest", bound("rollback", Deeds=1, Stale=1, Writes=1)),
    (("rolledback",), "NewestStays", bound("rollback", Deeds=1)),
    (("below",), "NewestStays", bound("rollback", Deeds=1)),
    (("anew",), "ReadersServed", bound("reader", Marks=1, Faults=1)),
    (("whole",), "BroughtBackWhole", bound("expire", "hold", Deeds=1, Marks=1, Faults=1)),
    (("chosen",), "NewestStays", bound("rollback", Deeds=1, Undos=1)),
    (("putwhole",), "BroughtBackWhole", bound("expire", Deeds=1, Faults=1, Undos=1)),
    (("gap",), "Unbroken", bound("expire", Deeds=1, Writes=1, Undos=1)),
    (("undocheck", "putwhole"), "BroughtBackWhole", bound("expire", Deeds=1, Undos=1)),
    (("emptied", "takewindow"), "Recoverable", bound("rollback", Deeds=1)),
    (("rewalk",), "NoLiveFileLost", bound("tag", Deeds=1)),
    (("freshdecide",), "ReadersServed", bound("reader", Marks=1)),
]
LARGE_MUTATIONS: list[Mutation] = [
    (("ourtags",), "Accounted", bound("expire", "hold", Deeds=1, Marks=1, Faults=1, Writes=1)),
    (("retag",), "Accounted", bound("rollback", Deeds=1, Writes=1, Faults=1, Undos=1)),
    (("unlook",), "NewestStays", bound("rollback", "hold", Deeds=1, Marks=1, Faults=1, Undos=1)),
    (("readon",), "ReadersServed", bound("reader", "hold", Marks=2, Faults=1, Undos=1)),
]
ASSUMPTIONS: list[Mutation] = [
    (("grace",), "NoLiveFileLost", bound("tag", Deeds=1)),
    (("takewindow",), "NewestStays", bound("rollback", Deeds=1)),
    (("readerwindow",), "ReadersServed", bound("reader", Marks=1)),
    (("expirewindow",), "BroughtBackWhole", bound("expire", Deeds=1, Writes=1, Undos=1)),
    (("tagwindow",), "NewestStays", bound("totag", Deeds=1)),
    (("hintwindow",), "JavaFindsNewest", bound("rollback", Deeds=1, Stale=1, Writes=1)),
]
REACHED = {
    "NeverPurged": bound(),
    "NeverSpared": bound("tag", Deeds=1),
    "NeverUndone": bound(Undos=1),
    "NeverGivenUp": bound("rollback", Deeds=1),
    "NeverTagged": bound(),
    "NeverRefused": bound("rollback", Deeds=1, Undos=1),
    "NeverOvertaken": bound("expire", Deeds=1, Writes=1),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", [*PROOFS, *(LARGE if FULL else ())])
def test_no_behaviour_breaks_a_never_rule_or_gets_stuck(name: str, tmp_path: Path) -> None:
    verdict = check(MODEL, configured(MODEL, {**PROOFS, **LARGE}[name]), tmp_path, workers=2)
    print(f"{verdict.distinct:,} distinct states")
    assert verdict.violated is None, verdict.steps
    assert verdict.distinct > 300


def test_where_a_rollback_left_nothing_all_can_come_back(tmp_path: Path) -> None:
    """Without the assumption that nobody rolls back to what goes, the newest may go; it is never lost."""
    changes = {**bound("rollback", Deeds=1, Writes=1, Faults=1), "Broken": words("takewindow")}
    kept = ("Recoverable", "NoLiveFileLost", "Accounted", "Unbroken")
    assert check(MODEL, configured(MODEL, changes, kept), tmp_path, workers=2).violated is None
    assert check(MODEL, configured(MODEL, changes, ("NeverEmptied",)), tmp_path, workers=1).violated == "NeverEmptied"


@pytest.mark.parametrize(
    ("off", "invariant", "budgets"),
    [
        pytest.param(*each, id=f"{'+'.join(each[0])}-{each[1]}")
        for each in (MUTATIONS + ASSUMPTIONS + LARGE_MUTATIONS if FULL else (MUTATIONS + ASSUMPTIONS)[::3])
    ],
)
def test_without_the_rule_the_invariant_breaks(
    off: tuple[str, ...], invariant: str, budgets: dict[str, str], tmp_path: Path
) -> None:
    verdict = check(MODEL, configured(MODEL, {**budgets, "Broken": words(*off)}, (invariant,)), tmp_path, workers=1)
    print(verdict)
    assert verdict.violated == invariant


@pytest.mark.parametrize("invariant", REACHED)
def test_the_model_reaches_what_it_is_about(invariant: str, tmp_path: Path) -> None:
    verdict = check(MODEL, configured(MODEL, REACHED[invariant], (invariant,)), tmp_path, workers=1)
    assert verdict.violated == invariant
