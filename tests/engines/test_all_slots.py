"""What is heavy runs on executors, on all of their slots and at one pace: on a session of five, by Spark's own word."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from .clusters import run_on, surroundings

pytestmark = [pytest.mark.spark, pytest.mark.full]


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("slots")
    around = {**surroundings(folder), "PYSPARK_PYTHON": sys.executable}
    return run_on({}, around, folder, script=Path(__file__).with_name("all_slots.py"))


@pytest.mark.full
def test_deletes_use_every_slot_and_share_one_pace(facts: dict[str, Any]) -> None:
    """One part of a written list has ten thousand keys: a thousand must be enough for five."""
    said = facts["deletes"]
    assert said["left"] == 0
    assert said["keys"] == [200] * 5, "five processes at once, each with an even part of the keys"
    assert said["tasks"] == 5
    assert said["pace"] == pytest.approx(1.0), "together they have the whole pace, and no more"
    assert not said["here"], "none of it in the driver's own process"


def test_looks_use_every_slot_and_share_one_pace(facts: dict[str, Any]) -> None:
    said = facts["looks"]
    assert said["missing"] == 2_000, "data files that are named and not there"
    assert said["tasks"] == 5
    assert set(said["parts"]) == {1 / 5}, "whichever of the five slots asked had a fifth of the pace"
    assert not said["here"], "none of it in the driver's own process"


def test_the_driver_holds_no_more_of_a_larger_table(facts: dict[str, Any]) -> None:
    """Ten times as many files, of which all are missing and all are needed again. Each one that was held would take
    some hundred bytes.
    """
    said = facts["memory"]
    assert said["ten times"] - said["some"] < 9 * said["files"] * 10, said
