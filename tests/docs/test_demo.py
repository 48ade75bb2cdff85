"""The demo's survey on Spark is the one that threads make, and every question of the proposal gets its row."""

from __future__ import annotations

from pathlib import Path

import pytest

from demo.__main__ import ASKED, ask, look
from demo.lake import local_catalog
from demo.proposal import PROPOSAL

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def surveyed(printed: str) -> list[str]:
    """Returns the lines that `plan --all` printed, without the command."""
    return printed.partition(" --all")[2].partition("\n# ")[0].splitlines()[1:]


def test_it_surveys_on_spark_and_asks_what_it_remembers(
    small_lake: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIRNLINE_ENGINE", "local")
    settings = local_catalog(small_lake)
    look(settings, "local")
    by_threads = surveyed(capsys.readouterr().out)
    look(settings, "spark")
    printed = capsys.readouterr().out
    assert "$ firnline plan --all --engine spark\n" in printed
    assert surveyed(printed) == by_threads
    monkeypatch.setenv("JAVA_HOME", "known to the tests")
    ask(settings)
    answered = capsys.readouterr().out.split("$ firnline sql ")[1:]
    assert ASKED.keys() == PROPOSAL.keys()
    assert len(answered) == len(PROPOSAL)
    assert all("\n1 row\n" in each and "NULL\n" not in each for each in answered)


def test_without_java_the_questions_are_left_out_and_that_is_said(
    small_lake: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    ask(local_catalog(small_lake))
    printed = capsys.readouterr().out
    assert "$ firnline sql" not in printed
    assert "make demo ENGINE=spark" in printed
