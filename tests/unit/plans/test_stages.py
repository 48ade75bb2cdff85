"""One list of stages: what a plan shows, its record says and a run carries out."""

from __future__ import annotations

from itertools import chain, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline.model.files import Tally
from firnline.plans.stages import (
    ERASURE_STAGES,
    EXPIRY_STAGES,
    SEARCH_STAGES,
    AwaitGrace,
    AwaitUndo,
    BeginGrace,
    CommitErasure,
    CommitExpiry,
    PurgeVictims,
    Sequences,
    Stage,
    in_words,
    read_stages,
    stages_json,
    stages_of_erasure,
    stages_of_expiry,
    stages_of_search,
)
from firnline.ports.formats import UndoWindow

COMMIT, VICTIMS, GRACE_MS = CommitExpiry(3, 1), Tally(7, 70), 60_000
ONE_OF_EACH: tuple[Stage, ...] = (
    AwaitUndo(GRACE_MS),
    COMMIT,
    CommitErasure(2, 1),
    BeginGrace(),
    AwaitGrace(GRACE_MS),
    PurgeVictims(7, 70),
)


@pytest.mark.parametrize("undo", UndoWindow)
def test_a_saved_list_is_read_as_it_was_made(undo: UndoWindow) -> None:
    stages = stages_of_expiry(COMMIT, GRACE_MS, VICTIMS, undo)
    assert read_stages(stages_json(stages), EXPIRY_STAGES) == stages
    assert isinstance(stages[-1], PurgeVictims)
    assert isinstance(stages[0], AwaitUndo) == (undo is UndoWindow.BEFORE_COMMIT)


@given(st.integers(0, 10**12), st.sampled_from(UndoWindow))
def test_the_waits_of_an_expiry_come_to_its_grace(grace_ms: int, undo: UndoWindow) -> None:
    """Half of it, or a millisecond more, is left to readers where the time to undo lies before the commit."""
    stages = stages_of_expiry(COMMIT, grace_ms, VICTIMS, undo)
    waits = [each.grace_ms for each in stages if isinstance(each, AwaitUndo | AwaitGrace)]
    assert sum(waits) == grace_ms
    assert 2 * waits[-1] >= grace_ms
    least = stages_of_expiry(COMMIT, grace_ms, VICTIMS, undo, after_ms=GRACE_MS)
    assert [each.grace_ms for each in least if isinstance(each, AwaitGrace)] == [max(waits[-1], GRACE_MS)]


def test_a_search_changes_no_table_and_waits_before_it_purges() -> None:
    stages = stages_of_search(GRACE_MS, VICTIMS)
    assert read_stages(stages_json(stages), SEARCH_STAGES) == stages
    assert [type(each) for each in stages] == [BeginGrace, AwaitGrace, PurgeVictims]


def test_where_nothing_goes_there_are_no_stages() -> None:
    assert stages_of_expiry(CommitExpiry(0, 0), GRACE_MS, Tally(), UndoWindow.AFTER_COMMIT) == ()
    assert stages_of_expiry(CommitExpiry(0, 0, side_objects=1), 0, Tally(), UndoWindow.AFTER_COMMIT)
    assert stages_of_search(GRACE_MS, Tally()) == ()


EXPIRIES = ((), *(stages_of_expiry(COMMIT, GRACE_MS, VICTIMS, undo) for undo in UndoWindow))
ERASURES = (stages_of_erasure(CommitErasure(2, 1), GRACE_MS, VICTIMS),)


def test_an_erasure_waits_for_readers_and_is_never_undone() -> None:
    (stages,) = ERASURES
    assert read_stages(stages_json(stages), ERASURE_STAGES) == stages
    assert AwaitGrace(GRACE_MS, undo=False) in stages


@pytest.mark.parametrize(
    ("made", "allowed"),
    [
        (EXPIRIES, EXPIRY_STAGES),
        ((stages_of_search(GRACE_MS, VICTIMS), ()), SEARCH_STAGES),
        (ERASURES, ERASURE_STAGES),
    ],
    ids=["expiry", "search", "erasure"],
)
def test_no_other_list_is_read_whatever_is_left_out_or_moved(
    made: tuple[tuple[Stage, ...], ...], allowed: Sequences
) -> None:
    """One who forges a record could else leave out the commit or the grace, and let a purge begin at once."""
    sound = {tuple(map(type, stages)) for stages in made}
    every = chain.from_iterable(permutations(ONE_OF_EACH, length) for length in range(len(ONE_OF_EACH) + 1))
    for stages in every:
        if tuple(map(type, stages)) in sound:
            continue
        with pytest.raises(ValueError, match="not those of such a run"):
            read_stages(stages_json(stages), allowed)


@pytest.mark.parametrize(
    "said",
    [
        {"stage": "await-grace"},
        {"stage": "await-grace", "grace_ms": "0"},
        {"stage": "await-grace", "grace_ms": True},
        {"stage": "await-grace", "grace_ms": 1, "more": 1},
        {"stage": "drop", "grace_ms": 1},
        {"grace_ms": 1},
    ],
)
def test_a_stage_that_is_not_understood_is_not_read(said: dict[str, object]) -> None:
    commit, _, purge = stages_json(stages_of_expiry(COMMIT, GRACE_MS, VICTIMS, UndoWindow.AFTER_COMMIT))
    with pytest.raises((TypeError, ValueError)):
        read_stages([commit, said, purge], EXPIRY_STAGES)


STRANGE: list[object] = [None, "x", "0", -5, 1.5, [5], {"a": 5}]


@pytest.mark.parametrize("undo", UndoWindow)
def test_no_field_of_a_stage_has_another_type_than_the_stage(undo: UndoWindow) -> None:
    """Nothing of no size waits, and what is not a truth value is neither true nor false: nobody stumbles over it."""
    said = stages_json(stages_of_expiry(CommitExpiry(3, 1, history=None), GRACE_MS, VICTIMS, undo))
    for number, stage in enumerate(said):
        for field in stage.keys() - {"stage"}:
            kinds = (bool,) if isinstance(stage[field], bool) else (str, type(None)) if field == "history" else (int,)
            for strange in (each for each in [*STRANGE, True, 7] if type(each) not in kinds or each == -5):
                with pytest.raises((TypeError, ValueError)):
                    read_stages([*said[:number], {**stage, field: strange}, *said[number + 1 :]], EXPIRY_STAGES)


def test_every_stage_has_words_of_its_own() -> None:
    assert len({in_words(each) for each in ONE_OF_EACH}) == len(ONE_OF_EACH)
