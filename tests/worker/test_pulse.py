"""A worker is well while it reads, sleeps, or waits for a stage that it began; and not when nothing is heard of it."""

from __future__ import annotations

import time
from threading import Event, Thread

import pytest

from firnline.worker.pulse import LONGEST_STAGE_S, SILENT_S, Pulse


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that have passed by a clock of the test's own."""
    passed = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: passed[0])
    return passed


def test_silence_is_an_illness_and_a_stage_is_none(passes: list[float]) -> None:
    pulse = Pulse()
    passes[0] += SILENT_S - 1
    assert pulse.is_well()
    passes[0] += 2
    assert not pulse.is_well()
    pulse.step("walking on Spark", 0)
    passes[0] += SILENT_S + 1
    assert pulse.is_well()
    assert pulse.facts() == {"silent_seconds": 601, "stage": "walking on Spark", "stage_seconds": 601}
    passes[0] += LONGEST_STAGE_S
    assert not pulse.is_well()


def test_a_stage_ends_with_its_last_step_with_a_read_and_with_the_round(passes: list[float]) -> None:
    pulse = Pulse()
    for end in (lambda: pulse.step("files", 7, 7), pulse.beat, pulse.end_stages):
        pulse.step("files", 3, 7)
        assert pulse.facts()["stage"] == "files"
        end()
        assert "stage" not in pulse.facts()


def test_reads_of_others_do_not_end_a_stage_and_a_thread_that_ended_has_none() -> None:
    pulse, begun, goes_on = Pulse(), Event(), Event()

    def work() -> None:
        pulse.step("listing on Spark", 0)
        begun.set()
        goes_on.wait(10)

    thread = Thread(target=work)
    thread.start()
    begun.wait(10)
    pulse.beat()
    assert pulse.facts()["stage"] == "listing on Spark"
    goes_on.set()
    thread.join()
    assert "stage" not in pulse.facts()
