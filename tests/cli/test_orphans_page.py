"""Searches of many tables are one page: those that failed, then the most, then the rest in one line; sums below."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from firnline.app.places import now_ms
from firnline.cli.main import run
from firnline.model.times import DAY_MS, due_minute, parse_instant
from tests.cli.saying import Capture, said
from tests.cli.test_flags import date

Lake = Any
TABLES, WIDTH = 40, 80


class Typing(io.StringIO):
    """A terminal at which nobody answers: a question reads the end of it."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def many(lake: Lake) -> Lake:
    for number in range(TABLES - 1):
        lake.another(f"a_table_of_the_north_with_a_name_{number:02}")
    for number, files in ((3, 1), (5, 2)):
        for each in range(files):
            lost = Path(f"ns/a_table_of_the_north_with_a_name_{number:02}/data/lost-{each}.parquet")
            lost.parent.mkdir(parents=True, exist_ok=True)
            lost.write_bytes(b"x" * 1000)
            date(lost, now_ms() - 30 * DAY_MS)
    return lake


def test_a_dry_run_of_many_tables_fits_a_page_and_asks_nothing(
    many: Lake, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = many.everything()
    monkeypatch.setattr("sys.stdin", Typing())
    shown = said(capsys, "orphans", "--all", "--dry-run").splitlines()
    table = [line for line in shown if line.startswith("  ")]
    assert max(map(len, table)) <= WIDTH
    assert [line.split() for line in table] == [
        ["table", "files", "bytes"],
        ["lake.ns.a_table_of_the_north_with_a_name_05", "2", "2.0", "KiB"],
        ["lake.ns.a_table_of_the_north_with_a_name_03", "1", "1000", "B"],
        ["and", str(TABLES - 2), "tables", "more", "nothing", "to", "remove"],
        [str(TABLES), "tables", "3", "2.9", "KiB"],
    ]
    assert "nothing was changed" in shown
    assert any("`-v` gives each table a line" in line for line in shown)
    assert "deleted now: 0 files, 0 B" not in shown
    assert many.everything() == before


def test_every_table_is_in_the_facts_and_with_v_on_the_page(many: Lake, capsys: Capture) -> None:
    facts = json.loads(said(capsys, "orphans", "--all", "--dry-run", "--json"))
    assert (len(facts["tables"]), facts["sums"]["victims"]["files"]) == (TABLES, 3)
    assert all("classes" in each for each in facts["tables"])
    assert sum("a_table_of" in line for line in said(capsys, "-v", "orphans", "--all", "--dry-run").splitlines()) == 39


def test_what_all_tables_fail_of_is_told_once(many: Lake, capsys: Capture) -> None:
    many.register("broken", f"file://{many.folder}/nowhere.json")
    capsys.readouterr()
    assert run(["orphans", "--all", "--dry-run"]) != 0
    shown = capsys.readouterr().out
    assert shown.count("metadata is missing") == 1
    assert f"and {TABLES + 1} tables more" in shown
    assert f"and {TABLES} others: " in shown


def test_what_goes_is_told_with_what_became_of_it(many: Lake, capsys: Capture) -> None:
    shown = said(capsys, "orphans", "--all", "--yes", "--grace", "0s")
    assert "name_05      2" in shown
    assert "deleted now: 3 files, 2.9 KiB" in shown
    assert shown.count(" done") == 2


def test_a_search_that_finds_what_a_run_already_waits_with_says_so(many: Lake, capsys: Capture) -> None:
    said(capsys, "orphans", "--all", "--yes", "--grace", "1h")
    first = json.loads(said(capsys, "runs", "--json"))["runs"]
    shown = said(capsys, "orphans", "--all", "--yes", "--grace", "2h")
    for each in first:
        assert f"committed, waits for the earlier run {each['run']}" in shown


@pytest.mark.full
def test_what_waits_for_another_run_tells_no_instant_of_its_own(many: Lake, capsys: Capture) -> None:
    said(capsys, "orphans", "--all", "--yes", "--grace", "2h")
    first = min(each["grace_ends"] for each in json.loads(said(capsys, "runs", "--json"))["runs"])
    said(capsys, "orphans", "--all", "--yes", "--grace", "0s")
    told = f"nothing was deleted: the first of them is due at {due_minute(parse_instant(first))} UTC"
    assert told in said(capsys, "purge").splitlines()


@pytest.mark.full
def test_nothing_goes_on_where_every_run_has_ended(many: Lake, capsys: Capture) -> None:
    shown = said(capsys, "orphans", "--all", "--yes", "--grace", "0s")
    assert "deleted now: 3 files" in shown
    assert "firnline undo" not in shown
    assert "firnline purge" not in shown


def test_where_each_table_has_a_line_none_is_promised(lake: Lake, capsys: Capture) -> None:
    lake.another("users")
    assert "`-v`" not in said(capsys, "orphans", "--all", "--dry-run")
