"""The demo's survey on Spark is the one that threads make, and every question of the proposal gets its row."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import firnline
from demo import __main__ as demo
from demo import lake
from demo.__main__ import ASKED, ask, look
from demo.lake import local_catalog
from demo.proposal import PROPOSAL

from .conftest import FEW_DAYS

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


def test_it_leaves_the_lake_as_it_was_made_for_the_readme_to_go_on(
    tmp_path: Path, inside: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, now, made = tmp_path / "lake", int(time.time() * 1000), dict[str, Any]()

    def plans() -> dict[str, object]:
        found = firnline.open()
        return {str(each): found.plan(each, now=now).to_json() for each in found.tables()}

    def fresh_lake(settings: dict[str, str]) -> None:
        lake.build(folder, now, days=FEW_DAYS)
        inside.chdir(folder)
        made.update(plans())

    inside.setenv("PYICEBERG_HOME", str(folder))
    inside.setenv("FIRNLINE_ENGINE", "local")
    inside.delenv("JAVA_HOME", raising=False)
    inside.setattr("sys.argv", ["demo"])
    inside.setattr(demo, "LAKE", folder)
    inside.setattr(demo, "SERVERS", tmp_path / "servers")
    inside.setattr(demo, "fresh_lake", fresh_lake)
    demo.main()
    assert capsys.readouterr().out.count(" --grace 0s ") == 2, "two tables were expired for good"
    inside.chdir(folder)
    assert plans() == made
    assert made["lake.artemis.telemetry"]["expire"], "there is something for the README's First use"
    assert firnline.open().runs("lake.artemis.telemetry") == []
    assert [each.name for each in tmp_path.iterdir()] == ["lake"]


def test_without_java_the_questions_are_left_out_and_that_is_said(
    small_lake: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    ask(local_catalog(small_lake))
    printed = capsys.readouterr().out
    assert "$ firnline sql" not in printed
    assert "make demo ENGINE=spark" in printed
