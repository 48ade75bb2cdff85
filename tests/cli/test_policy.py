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
