"""`firnline policy`: what is in force on a table and where it was written; and what is wrong with a file."""

from __future__ import annotations

import json
from typing import Any

import pytest

from firnline.cli.main import run

Lake = Any

LAYERED = """\
keep:
  within: 30d
grace: 2d
catalogs:
  lake:
    namespaces:
      ns:
        keep: {within: 20d, daily: 7}
        tables:
          events: {keep: {within: 10d, last: 2}}
"""


def settings(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert run(["policy", "show", "lake.ns.events", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["table"] == "lake.ns.events"
    return {each["name"]: each for each in said["settings"]}


def test_every_value_says_where_it_was_written_and_what_it_replaced(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    lake.policy(LAYERED)
    said = settings(capsys)
    assert said["keep within"]["source"] == "firnline.yaml:10, table events"
    assert [each["source"] for each in said["keep within"]["overrides"]] == [
        "firnline.yaml:8, namespace ns",
        "firnline.yaml:2, global",
    ]
    assert said["keep daily"]["source"] == "firnline.yaml:8, namespace ns"
    assert (said["grace"]["value"], said["grace"]["source"]) == ("2d", "firnline.yaml:3, global")
    assert [each["value"] for each in said["grace"]["overrides"]] == ["1d"]
    assert said["blast-radius"] == {"name": "blast-radius", "value": "90%", "source": "default", "overrides": []}


def test_every_setting_is_shown(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    assert {"grace", "blast-radius", "include-outside", "records", "engine"} <= settings(capsys).keys()


def test_a_table_property_lies_between_namespace_and_table(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    lake.policy(LAYERED)
    lake.publish(edit=lambda document: document.update(properties={"firnline.keep.daily": "3", "firnline.grace": "5d"}))
    said = settings(capsys)
    assert said["keep daily"]["source"] == "table property firnline.keep.daily"
    assert said["grace"]["value"] == "5d"


def test_without_a_policy_the_tables_own_retention_is_shown(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["policy", "show", "lake.ns.events"]) == 0
    assert capsys.readouterr().out.startswith("lake.ns.events: the table's own retention: 1 per branch")


def test_the_page_names_the_sources_too(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    lake.policy(LAYERED)
    assert run(["policy", "show", "lake.ns.events"]) == 0
    page = capsys.readouterr().out
    for words in ("firnline.yaml:10, table events", "within 20d (firnline.yaml:8, namespace ns)", "default"):
        assert words in page


def test_a_sound_policy_is_shown_level_by_level(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    lake.policy(LAYERED)
    assert run(["policy", "check", "--json"]) == 0
    levels = json.loads(capsys.readouterr().out)["levels"]
    assert [level for level, _ in levels] == ["global", "lake.ns", "lake.ns.events"]
    assert run(["policy", "check"]) == 0
    assert "sound" in capsys.readouterr().out


def test_where_no_policy_is_written_that_is_said(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["policy", "check"]) == 0
    assert "no policy is written" in capsys.readouterr().out


def test_a_removal_that_is_forbidden_does_not_hide_the_policy(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    lake.publish(edit=lambda document: document.update(properties={"gc.enabled": "false"}))
    assert run(["policy", "show", "lake.ns.events"]) == 0
    assert "lake.ns.events" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("written", "line", "said"),
    [
        (LAYERED.replace("  lake:", "  lakke:"), 5, "no catalog 'lakke' (did you mean 'lake'?)"),
        (LAYERED.replace("      ns:", "      nss:"), 7, "no namespace 'nss' (did you mean 'ns'?)"),
        (LAYERED.replace("events:", "evnets:"), 10, "no table 'evnets' (did you mean 'events'?)"),
        (LAYERED.replace("events:", "zebras:"), 10, "no table 'zebras'"),
    ],
)
def test_a_name_that_nothing_has_is_wrong_by_line(
    lake: Lake, capsys: pytest.CaptureFixture[str], written: str, line: int, said: str
) -> None:
    lake.policy(written)
    assert run(["policy", "check"]) == 2
    assert f"firnline.yaml:{line}: {said}" in capsys.readouterr().err


def test_a_catalog_in_other_letters_is_the_same(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    lake.policy(LAYERED.replace("  lake:", "  LAKE:"))
    assert run(["policy", "check"]) == 0
    capsys.readouterr()
    assert settings(capsys)["keep within"]["source"] == "firnline.yaml:10, table events"


@pytest.mark.parametrize("command", [["plan", "lake.ns.events"], ["why", "lake.ns.events", "main"]])
def test_a_misspelt_rule_stops_the_commands_it_was_meant_for(
    lake: Lake, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    lake.policy(LAYERED.replace("events:", "evnets:"))
    assert run(command) == 2
    assert "firnline.yaml:10: 'evnets' is nearly the table 'events'" in capsys.readouterr().err


BY_PATTERN = """\
keep: {within: 30d}
catalogs:
  "l*":
    namespaces:
      "*":
        tables:
          "ev*": {keep: {last: 2, within: off}}
"""


def test_a_pattern_decides_what_a_plan_keeps(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    lake.policy(BY_PATTERN)
    assert settings(capsys)["keep last"]["source"] == "firnline.yaml:7, table ev*"
    assert run(["plan", "lake.ns.events", "--now", str(lake.events.now_ms), "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    kept = [each["reasons"] for each in plan["keep"]]
    assert ["last #2"] in kept
    assert len(plan["keep"]) + len(plan["expire"]) == 8
    assert run(["policy", "check"]) == 0
    assert "l*.*.ev*" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("written", "line", "said"),
    [
        (BY_PATTERN.replace('"l*"', '"lak?_*"'), 3, "no catalog is named like 'lak?_*' (near are lake)"),
        (BY_PATTERN.replace('"ev*"', '"event_*"'), 7, "no table is named like 'event_*' (near are events)"),
        (BY_PATTERN.replace('"ev*"', "evnets"), 7, "no table 'evnets' (did you mean 'events'?)"),
    ],
)
def test_a_pattern_that_nothing_matches_is_wrong_by_line(
    lake: Lake, capsys: pytest.CaptureFixture[str], written: str, line: int, said: str
) -> None:
    lake.policy(written)
    assert run(["policy", "check"]) == 2
    assert f"firnline.yaml:{line}: {said}" in capsys.readouterr().err


def test_a_misspelt_table_under_patterns_stops_the_plan(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    lake.policy(BY_PATTERN.replace('"ev*"', "evnets"))
    assert run(["plan", "lake.ns.events"]) == 2
    assert "firnline.yaml:7: 'evnets' is nearly the table 'events'" in capsys.readouterr().err


def test_a_plan_tells_of_a_pattern_that_matches_but_for_its_case(lake: Any, capsys: pytest.CaptureFixture[str]) -> None:
    (lake.folder / "firnline.yaml").write_text(
        'catalogs: {lake: {namespaces: {ns: {tables: {"EV*": {keep: {last: 99}}}}}}}\n'
    )
    assert run(["plan", "lake.ns.events", "--older-than", "2100-01-01"]) == 0
    shown = capsys.readouterr().out
    assert "note: firnline.yaml:1: 'EV*' is no pattern of the table 'events'" in shown
