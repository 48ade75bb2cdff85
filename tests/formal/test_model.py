"""The lifecycle model holds as designed, fails without each of its rules, and reaches what it talks about."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .tlc import Verdict, check, configured, read_verdict

FULL = os.environ.get("FIRNLINE_FULL") == "1"
MODEL = "Lifecycle"
LEAK = ("NoLeak", "NoLiveFileLost", "UndoableIntact", "OrderedPurge")


def rules(*names: str) -> str:
    """A TLA+ set of strings."""
    return "{" + ", ".join(f'"{name}"' for name in names) + "}"


def bound(**budgets: int | str) -> dict[str, str]:
    """Constants of a check. Plans may overlap, since safety must not depend on "oneplan"."""
    return {"Broken": rules("oneplan"), **{name: str(value) for name, value in budgets.items()}}


AGAIN = rules("again", "remove")
PROOFS = {
    "writers": bound(Writes=1, Tags=1, Transactions=1),
    "two edits": bound(Writes=2, Transactions=1, Kinds=AGAIN),
    "two runs": bound(NRuns=2, Writes=1, Undos=1, Kinds=AGAIN),
    "refs": bound(Writes=1, Tags=1, Undos=1, Foreign=1, AgedTag="TRUE", Kinds=AGAIN),
    "registered again": bound(NRuns=2, Registers=1, Faults=1),
    "crashes": bound(NRuns=2, Undos=1, Faults=1),
    "two crashes": bound(Undos=1, Foreign=1, Registers=1, Faults=2),
    "hold": bound(Writes=1, Holds=1, Undos=1, Faults=1, Kinds=rules("again", "rollback")),
}
LARGE = {
    "writers, large": bound(NRuns=2, Writes=1, Tags=1),
    "two edits, large": bound(Writes=2, Tags=1, Transactions=1),
    "two runs, large": bound(NRuns=2, Writes=1, Undos=1, Foreign=1, Kinds=AGAIN),
    "registered again, large": bound(NRuns=2, Registers=1, Faults=2),
    "crashes, large": bound(NRuns=2, Undos=1, Faults=2),
    "hold, large": bound(NRuns=2, Holds=1, Undos=1),
    "three runs": bound(NRuns=3, Undos=1),
}
NO_LEAK = {
    "leak": bound(NRuns=2, Writes=1, Undos=1, Broken="{}"),
    "leak, crashes": bound(NRuns=2, Faults=1, Undos=1, Broken="{}"),
}
LARGE_NO_LEAK = {
    "leak, large": bound(NRuns=2, Writes=2, Tags=1, Broken="{}", Kinds=AGAIN),
    "leak, three runs": bound(NRuns=3, Writes=1, Broken="{}"),
}

# A rule that is switched off → the invariant that breaks, and what must be in the way for it to break.
Mutation = tuple[tuple[str, ...], str, dict[str, str]]
MUTATIONS: list[Mutation] = [
    (("rewalk",), "NoLiveFileLost", bound(Writes=1)),
    (("cas",), "NewRefWins", bound(Writes=1)),
    (("decide",), "NewRefWins", bound(Tags=1)),
    (("order", "roots"), "UndoableIntact", bound(NRuns=2)),
    (("order",), "OrderedPurge", bound(NRuns=2)),
    (("order",), "NoLeak", bound(NRuns=2)),
    (("roots",), "UndoableIntact", bound(NRuns=2, Registers=1)),
    (("bothways",), "UndoableIntact", bound(NRuns=2, Writes=2, Kinds=AGAIN)),
    (("attempts",), "UndoableIntact", bound(NRuns=2, Registers=1, Faults=1)),
    (("readback",), "Accounted", bound(Faults=1)),
    (("quiet",), "Accounted", bound(Undos=1, Faults=1)),
    (("lease",), "NoLiveFileLost", bound(Registers=1, Faults=1)),
    (("wait",), "NoLiveFileLost", bound(Registers=1, Faults=1)),
    (("takeover",), "stuck", bound(Faults=1)),
    (("intent", "lease"), "NoLiveFileLost", bound(Undos=1, Faults=1)),
    (("undocheck",), "NoLiveFileLost", bound(Undos=1, Foreign=1)),
    (("keeprefs",), "NewRefWins", bound(Undos=1, Tags=1, AgedTag="TRUE")),
    (("confirm",), "HeldIntact", bound(Holds=1)),
    (("list",), "OnlyWrittenListDeleted", bound(NRuns=2)),
    (("fullplan",), "NoLeak", bound(NRuns=2)),
    (("oneplan",), "NoLeak", bound(NRuns=2)),
]
LARGE_MUTATIONS: list[Mutation] = [
    (("settle", "oneplan"), "Accounted", bound(NRuns=2, Undos=1, Faults=2)),
]
ASSUMPTIONS: list[Mutation] = [
    (("grace",), "NoLiveFileLost", bound(Writes=1, Transactions=1)),
    (("batchwindow",), "NoLiveFileLost", bound(Registers=1)),
    (("undowindow",), "NoLiveFileLost", bound(Undos=1, Foreign=1)),
]
REACHED = {
    "NeverPurged": bound(),
    "NeverBothDone": bound(NRuns=2),
    "NeverSpared": bound(Writes=1),
    "NeverUndone": bound(Undos=1),
    "NeverRefused": bound(Undos=1, Foreign=1),
    "NeverHeld": bound(Holds=1),
    "NeverTakenOver": bound(Faults=1),
}


def holds(changes: dict[str, str], invariants: tuple[str, ...], scratch: Path) -> Verdict:
    """The verdict of a complete search that found nothing; the number of states is printed."""
    verdict = check(MODEL, configured(MODEL, changes, invariants), scratch, workers=2)
    print(f"{verdict.distinct:,} distinct states")
    assert verdict.violated is None, verdict.steps
    return verdict


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", [*PROOFS, *(LARGE if FULL else ())])
def test_no_behaviour_breaks_a_never_rule_or_gets_stuck(name: str, tmp_path: Path) -> None:
    verdict = holds({**PROOFS, **LARGE}[name], (), tmp_path)
    assert verdict.distinct > 1_000


@pytest.mark.parametrize("name", [*NO_LEAK, *(LARGE_NO_LEAK if FULL else ())])
def test_no_file_of_an_expired_snapshot_is_left_behind(name: str, tmp_path: Path) -> None:
    verdict = holds({**NO_LEAK, **LARGE_NO_LEAK}[name], LEAK, tmp_path)
    assert verdict.distinct > 1_000


@pytest.mark.parametrize(
    ("off", "invariant", "budgets"),
    [
        pytest.param(*each, id=f"{'+'.join(each[0])}-{each[1]}")
        for each in MUTATIONS + ASSUMPTIONS + (LARGE_MUTATIONS if FULL else [])
    ],
)
def test_without_the_rule_the_invariant_breaks(
    off: tuple[str, ...], invariant: str, budgets: dict[str, str], tmp_path: Path
) -> None:
    named = () if invariant == "stuck" else (invariant,)
    verdict = check(MODEL, configured(MODEL, {**budgets, "Broken": rules(*off)}, named), tmp_path, workers=1)
    print(verdict)
    assert verdict.violated == invariant


@pytest.mark.parametrize("invariant", REACHED)
def test_the_model_reaches_what_it_is_about(invariant: str, tmp_path: Path) -> None:
    verdict = check(MODEL, configured(MODEL, {**REACHED[invariant], "Broken": "{}"}, (invariant,)), tmp_path, workers=1)
    assert verdict.violated == invariant


def test_output_without_a_verdict_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="no verdict"):
        read_verdict("Error: Parsing or semantic analysis failed.")
