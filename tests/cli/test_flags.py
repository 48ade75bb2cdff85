"""The small flags and names that a person tries first: help, quiet, ages, dates, a stamp, a table's last run."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from firnline.app.places import now_ms
from firnline.cli.main import app, run
from firnline.lake import open_lake
from firnline.model.times import DAY_MS, due_minute, minute, parse_instant
from firnline.ops.html.runs import run_figures
from firnline.ops.runs.status import grace_end
from firnline.testing.dated import date
from firnline.testing.tables import QuickFiles, SmallTable
from tests.cli.saying import Capture, facts, said

PLAN = ("plan", "lake.ns.events", "--retain-last", "1")
EXPIRE = ("expire", "lake.ns.events", "--retain-last", "1", "--yes")
HEADINGS = ["run", "table", "state", "grace ends", "snapshots", "files", "bytes"]
Lake = Any


# ---------------------------------------------------------------- help


@pytest.mark.parametrize("path", [[], ["plan"], ["policy"], ["policy", "show"]], ids=" ".join)
def test_help_is_found_by_every_name_that_people_try(path: list[str], capsys: Capture) -> None:
    wanted = said(capsys, *path, "--help")
    assert said(capsys, *path, "-h") == wanted
    assert said(capsys, "help", *path).strip() == wanted.strip()


def test_help_of_a_command_that_does_not_exist_names_the_nearest(capsys: Capture) -> None:
    assert said(capsys, "help", "plam", code=2) == "error: no such command: firnline plam\n\nhint: did you mean plan?\n"
    assert "`firnline policy --help`" in said(capsys, "help", "policy", "zzz", code=2)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["plan", "x.y", "--nonsense"], "firnline plan --help"),
        (["policy", "show"], "firnline policy show --help"),
        (["plan"], "firnline plan --help"),
        (["nonsense"], "firnline --help"),
        (["plan", "x", "--keep-last"], "firnline plan --help"),
        (["tag", "add", "t", "--retain"], "firnline tag add --help"),
        (["runs", "--state"], "firnline runs --help"),
        (["-q", "plan", "x", "--list=3"], "firnline plan --help"),
    ],
)
def test_a_usage_error_names_the_help_of_its_own_command(arguments: list[str], named: str, capsys: Capture) -> None:
    assert f"`{named}`" in said(capsys, *arguments, code=2)


@pytest.mark.parametrize("many", ["q", "0", "-1", "1.5"])
def test_at_once_takes_a_number(many: str, capsys: Capture) -> None:
    assert "--at-once takes a number of 1 or more" in said(capsys, "plan", "--all", f"--at-once={many}", code=2)


def test_undo_takes_no_pattern(lake: Lake, capsys: Capture) -> None:
    assert "undo takes one run or one table, no pattern: lake.ns.*" in said(capsys, "undo", "lake.ns.*", code=2)


# ---------------------------------------------------------------- how much is said


def test_quiet_says_the_result_and_no_hint(lake: Lake, capsys: Capture) -> None:
    loud, quiet = said(capsys, *PLAN), said(capsys, *PLAN, "-q")
    assert "hint:" in loud
    assert quiet == loud[: loud.index("\nhint:")]
    assert said(capsys, "-q", *PLAN) == quiet
    assert "hint:" in said(capsys, *PLAN), "it holds for one command"


def test_verbose_shows_whole_lists_and_what_each_step_did(lake: Lake, capsys: Capture) -> None:
    for _ in range(25):
        lake.events.append(1)
    lake.publish()
    arguments = ("plan", "lake.ns.events", "--retain-last", "30", "--older-than", "2100-01-01")
    assert "--list shows them" in said(capsys, *arguments)
    assert run([*arguments, "-v"]) == 0
    shown = capsys.readouterr()
    assert "--list shows them" not in shown.out
    assert " in 0." in shown.err, "a step, with how long it took"
    assert "\x1b" not in shown.err


def test_every_command_takes_both() -> None:
    def commands(group: Any) -> Any:
        for each in group.commands.values():
            yield from commands(each) if hasattr(each, "commands") else [each]

    options = {each.name: {name for known in each.params for name in known.opts} for each in commands(get_command(app))}
    assert [name for name, known in options.items() if not {"-q", "-v"} <= known] == []


def test_less_and_more_at_once_is_refused(capsys: Capture) -> None:
    assert "-q and -v" in said(capsys, "-q", "tables", "-v", code=2)


# ---------------------------------------------------------------- times


def test_an_age_is_counted_back_from_now_or_from_the_instant_that_is_given(lake: Lake, capsys: Capture) -> None:
    now = ("--now", "2026-01-16T00:00:00Z")
    by_age = facts(capsys, *PLAN, "--older-than", "10d", *now)
    by_instant = facts(capsys, *PLAN, "--older-than", "2026-01-06T00:00:00Z", *now)
    assert by_age["expire"] == by_instant["expire"] != []
    assert facts(capsys, *PLAN, "--older-than", "10y")["expire"] == []


def test_what_is_neither_an_age_nor_an_instant_is_told_all_that_will_do(lake: Lake, capsys: Capture) -> None:
    for wrong in ("yesterday", "2026-01-05T00:00:00"):
        assert "hint: write an age (7d), a date (" in said(capsys, *PLAN, "--older-than", wrong, code=2)


def test_a_date_is_its_beginning_in_utc(lake: Lake, capsys: Capture) -> None:
    by_date = facts(capsys, *PLAN, "--older-than", "2026-01-05")
    assert by_date["expire"] == facts(capsys, *PLAN, "--older-than", "2026-01-05T00:00:00Z")["expire"]
    held = facts(capsys, "hold", "add", "lake.ns.events", "case-7", "main", "--until", "2027-01-01")
    assert held["until"] == "2027-01-02T00:00:00.000Z", "that day counts"
    again = said(capsys, "hold", "add", "lake.ns.events", "case-8", "main", "--until", "2027-01-01")
    assert again.startswith("held, until 2027-01-02 00:00 UTC: ")


def test_a_hold_lasts_for_an_age_from_now_and_none_ends_before_it_began(lake: Lake, capsys: Capture) -> None:
    before = now_ms()
    held = facts(capsys, "hold", "add", "lake.ns.events", "case-7", "--until", "30d")
    assert before <= parse_instant(held["until"]) - 30 * DAY_MS <= now_ms()
    refused = said(capsys, "hold", "add", "lake.ns.events", "case-8", "--until", "2025-01-01", code=2)
    assert refused.startswith("error: --until 2025-01-01 has passed\n")
    assert [each["name"] for each in facts(capsys, "hold", "list", "lake.ns.events")["holds"]] == ["case-7"]


def test_a_refusal_names_every_hold_on_the_table_and_how_each_ends(lake: Lake, capsys: Capture) -> None:
    table = "lake.ns.events"
    facts(capsys, "hold", "add", table, "legal", "--who", "ann", "--why", "case 12", "--until", "2100-01-01")
    alone = said(capsys, *PLAN, code=14)
    assert f'error: {table} is held as a whole: legal (ann, "case 12", until 2100-01-02 00:00 UTC)\n' in alone
    facts(capsys, "hold", "add", table, "move", "--who", "bob")
    both = said(capsys, *PLAN, code=14)
    assert "until 2100-01-02 00:00 UTC), move (bob, until it is released)\n" in both
    assert f"`firnline hold release {table} legal`, `firnline hold release {table} move` end the holds" in both


def test_a_run_remembers_the_instant_and_not_the_age(lake: Lake, capsys: Capture) -> None:
    run_id = facts(capsys, *PLAN, "--older-than", "7d", "--save")["run"]
    record = next(lake.folder.rglob(f"runs/{run_id.partition('@')[2]}/plan.json"))
    assert isinstance(json.loads(record.read_text())["request"]["older_than_ms"], int)


@pytest.mark.parametrize("name", ["--history", "--keep-expired-refs"])
def test_the_history_has_a_short_name_too(lake: Lake, capsys: Capture, name: str) -> None:
    stages = facts(capsys, *PLAN, name, "180d")["stages"]
    assert [each["history"] for each in stages if each["stage"] == "commit"] == ["180d"]


def test_why_goes_by_the_rules_that_a_plan_is_asked_with(lake: Lake, capsys: Capture) -> None:
    oldest = facts(capsys, *PLAN)["expire"][0]
    assert facts(capsys, "why", "lake.ns.events", oldest, "--keep-last", "1")["kept"] is False
    assert facts(capsys, "why", "lake.ns.events", oldest, "--keep-last", "20")["kept"] is True


# ---------------------------------------------------------------- runs and their names


def test_a_dry_run_of_expire_is_a_plan(lake: Lake, capsys: Capture) -> None:
    before = lake.everything()
    plan, dry = facts(capsys, *PLAN), facts(capsys, "expire", "lake.ns.events", "--retain-last", "1", "--dry-run")
    assert {name: dry[name] for name in ("expire", "keep", "victims", "stages")} == {
        name: plan[name] for name in ("expire", "keep", "victims", "stages")
    }
    hour = facts(capsys, "expire", "lake.ns.events", "--retain-last", "1", "--dry-run", "--grace", "1h")
    assert {"stage": "await-grace", "grace_ms": 3_600_000, "undo": True} in hour["stages"]
    several = facts(capsys, "expire", "--all", "--retain-last", "1", "--dry-run")
    assert several["sums"]["expire"] == len(plan["expire"])
    assert lake.everything() == before


def test_undo_of_a_table_takes_back_its_last_run(lake: Lake, capsys: Capture) -> None:
    first = facts(capsys, "expire", "lake.ns.events", "--keep-last", "5", "--yes")["run"]
    second = facts(capsys, *EXPIRE)["run"]
    undone = facts(capsys, "undo", "lake.ns.events")
    assert (undone["run"], undone["state"]) == (second, "undone")
    # Asked once more, it must not take back the run before: nobody meant that one.
    refused = said(capsys, "undo", "lake.ns.events", code=14)
    assert refused.startswith(f"error: {second} was already undone, at 20")
    stamp = first.partition("@")[2]
    assert refused.endswith(f"`firnline undo {stamp}` takes back the one before, if it is meant\n")
    facts(capsys, "undo", stamp)
    assert said(capsys, "undo", "lake.ns.events", code=14) == said(capsys, "undo", second, code=14)


def test_undo_of_a_table_leaves_a_plan_that_was_only_saved(lake: Lake, capsys: Capture) -> None:
    saved = facts(capsys, *PLAN, "--save")["run"]
    refused = said(capsys, "undo", "lake.ns.events", code=2)
    assert f"{saved} is only a saved plan; `firnline undo {saved.partition('@')[2]}` calls it off" in refused
    assert facts(capsys, "undo", saved.partition("@")[2])["state"] == "cancelled"


def test_a_run_that_was_undone_says_so_and_when(lake: Lake, capsys: Capture) -> None:
    named = facts(capsys, *EXPIRE)["run"]
    facts(capsys, "undo", named)
    refused = said(capsys, "undo", named, code=14)
    assert f"{named} was already undone, at 20" in refused
    assert "hint:" not in refused


def test_a_purged_run_says_that_it_is_too_late(lake: Lake, capsys: Capture) -> None:
    named = facts(capsys, *EXPIRE, "--grace", "0s")["run"]
    assert f"{named} cannot be undone: it is purged since 20" in said(capsys, "undo", named, code=14)
    assert said(capsys, "undo", "lake.ns.events", code=14) == said(capsys, "undo", named, code=14)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("command", [("runs", "show"), ("undo",), ("purge",), ("resume",)], ids=" ".join)
def test_the_stamp_alone_names_a_run(lake: Lake, capsys: Capture, command: tuple[str, ...]) -> None:
    named = facts(capsys, *EXPIRE)["run"]
    assert facts(capsys, *command, named.partition("@")[2])["run"] == named


def test_a_stamp_that_no_run_has_is_refused(lake: Lake, capsys: Capture) -> None:
    for stamp in ("20260101T000000Z-abcdef", "20260101T000000Z-abc", "20260101T000000Z"):
        refused = said(capsys, "undo", stamp, code=2)
        assert refused.startswith(f"error: no such run: {stamp}\n")
        assert "hint: `firnline runs` shows them" in refused


def test_a_table_without_runs_has_none_to_undo(lake: Lake, capsys: Capture) -> None:
    words = said(capsys, "undo", "lake.ns.events", code=2)
    assert words.startswith("error: lake.ns.events has no run to undo\n")
    assert "`firnline runs`" in words


def test_a_stamp_that_several_runs_have_is_refused(
    lake: Lake, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.another("other")
    monkeypatch.setattr("secrets.token_hex", lambda count: ("abcdef" * count)[: 2 * count])
    stamps: list[str] = []
    while len(stamps) != 2 or len(set(stamps)) != 1:  # planned within one second
        saved = facts(capsys, "plan", "--all", "--retain-last", "1", "--save")["tables"]
        stamps = [each["run"].partition("@")[2] for each in saved]
    refused = said(capsys, "undo", stamps[0], code=2)
    assert "several tables have a run" in refused
    assert f"lake.ns.events@{stamps[0]}, lake.ns.other@{stamps[0]}" in refused


# ---------------------------------------------------------------- lists of runs


def test_runs_are_one_table_with_the_end_of_grace_and_what_goes(lake: Lake, capsys: Capture) -> None:
    run_ = facts(capsys, *EXPIRE)
    shown = said(capsys, "runs")
    headings, row, *_ = shown.splitlines()
    assert re.split(r" {2,}", headings.strip()) == HEADINGS
    ends, victims = due_minute(parse_instant(run_["grace_ends"])), run_["planned"]["victims"]
    assert row.split()[:3] == [run_["run"].partition("@")[2], "lake.ns.events", "committed"]
    assert f"{ends}  " in row
    assert row.split()[-3] == str(victims["files"])
    assert shown.count("hint: `firnline undo RUN`") == 1
    assert said(capsys, "purge").splitlines()[1] == row


def test_runs_are_filtered_by_state_time_and_table(lake: Lake, capsys: Capture) -> None:
    undone = facts(capsys, *EXPIRE)["run"]
    facts(capsys, "undo", undone)
    committed = facts(capsys, *EXPIRE)["run"]

    def listed(*filters: str) -> list[str]:
        return [each["run"] for each in facts(capsys, "runs", *filters)["runs"]]

    assert listed() == [undone, committed]
    assert listed("--state", "committed") == listed("--state", "open") == [committed]
    assert listed("--state", "ended") == [undone]
    assert listed("--state", "undone", "--state", "committed") == [undone, committed]
    assert listed("--since", "1h") == [undone, committed]
    assert listed("--since", "2100-01-01") == []
    assert listed("--table", "lake.ns.ev*") == [undone, committed]
    assert "no table is named like" in said(capsys, "runs", "--table", "lake.ns.x*", code=10)
    assert "--state is one of: open, ended, planned" in said(capsys, "runs", "--state", "nonsense", code=2)
    assert said(capsys, "runs", "--state", "purging") == "no run is purging; 2 are in other states\n"
    assert said(capsys, "runs", "--state", "done", "--state", "purging").startswith("no run is done or purging; 2 are")
    assert said(capsys, "runs", "--since", "2100-01-01") == "no run was planned since then; 2 runs before\n"


def test_purge_takes_the_filters_of_runs_and_leaves_the_others(lake: Lake, capsys: Capture) -> None:
    committed = facts(capsys, *EXPIRE)["run"]

    def purged(*filters: str) -> list[str]:
        return [each["run"] for each in facts(capsys, "purge", *filters)["runs"]]

    assert purged() == purged("--state", "committed") == purged("--state", "open", "--since", "1h") == [committed]
    assert purged("--state", "purging") == purged("--since", "2100-01-01") == []
    assert said(capsys, "purge", "--since", "2100-01-01").startswith("nothing to purge")
    assert "do not go together" in said(capsys, "purge", committed, "--since", "1h", code=2)
    assert "--state is one of" in said(capsys, "purge", "--state", "nonsense", code=2)


def test_a_purge_leaves_what_is_due_and_not_meant(lake: Lake, capsys: Capture) -> None:
    facts(capsys, *EXPIRE, "--grace", "1s")
    time.sleep(1.1)
    assert facts(capsys, "purge", "--state", "purging")["runs"] == []
    [left] = facts(capsys, "runs")["runs"]
    assert left["state"] == "committed"
    [done] = facts(capsys, "purge", "--state", "committed")["runs"]
    assert done["state"] == "done"


def test_a_purge_before_its_time_says_that_nothing_was_deleted_and_when_it_will_be(lake: Lake, capsys: Capture) -> None:
    assert said(capsys, "purge") == "nothing to purge: no run waits to delete its files\n"
    assert said(capsys, "resume") == "nothing to resume: no run was begun and left\n"
    committed = facts(capsys, *EXPIRE, "--grace", "2h")
    told = f"nothing was deleted: it is due at {due_minute(parse_instant(committed['grace_ends']))} UTC"
    for command in (["purge"], ["purge", committed["run"]], ["resume"], ["resume", committed["run"]]):
        assert told in said(capsys, *command).splitlines()
    assert "nothing was deleted" not in said(capsys, "runs")


def test_a_run_that_had_ended_is_told_as_such(lake: Lake, capsys: Capture) -> None:
    undone, gone = facts(capsys, *EXPIRE)["run"], facts(capsys, "undo", "lake.ns.events")["run"]
    assert undone == gone
    for command in ("purge", "resume"):
        assert said(capsys, command, undone).startswith("nothing was done: this run has been undone since ")
    done = facts(capsys, *EXPIRE, "--grace", "0s")
    assert done["state"] == "done"
    assert said(capsys, "purge", done["run"]).startswith("nothing was done: this run has been done since ")


EXACT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")


def test_people_are_told_minutes_and_programs_every_instant(lake: Lake, capsys: Capture) -> None:
    told = said(capsys, *EXPIRE, "--grace", "2h")
    told += "".join(said(capsys, *words) for words in (["purge"], ["runs"], ["runs", "lake.ns.events"], PLAN))
    told += said(capsys, "hold", "add", "lake.ns.events", "case-9", "main", "--until", "2027-01-01")
    told += said(capsys, "hold", "list", "lake.ns.events") + said(capsys, *PLAN, "--list")
    told += said(capsys, "undo", "lake.ns.events") + said(capsys, "undo", "lake.ns.events", code=14)
    assert EXACT.findall(told) == []
    assert all(EXACT.match(each["planned_at"]) for each in facts(capsys, "runs")["runs"])


def test_every_table_of_runs_tells_the_end_of_grace_alike(lake: Lake, capsys: Capture) -> None:
    undone = facts(capsys, *EXPIRE)["run"]
    facts(capsys, "undo", undone)
    done = facts(capsys, *EXPIRE, "--grace", "0s")
    facts(capsys, "purge", done["run"])
    ended = minute(parse_instant(done["grace_ends"]))
    rows = said(capsys, "runs").splitlines()[1:3]
    listed = open_lake().runs("lake.ns.events")
    assert [len(re.split(r" {2,}", row.strip())) for row in rows] == [6, 7], rows
    assert re.split(r" {2,}", rows[1].strip())[3] == ended
    assert [grace_end(each.run) for each in listed] == ["", ended]
    assert [run_figures(each)[4] for each in listed] == ["", ended]


def test_a_cancelled_run_says_why(lake: Lake, capsys: Capture) -> None:
    saved = facts(capsys, *PLAN, "--save")["run"]
    assert said(capsys, "undo", saved) == f"{saved}: cancelled, because undone before it was committed\n"
    assert said(capsys, "runs").splitlines()[1].endswith("undone before it was committed")
    refused = said(capsys, "undo", saved, code=14)
    assert f"{saved} was cancelled at 20" in refused
    assert "because undone before it was committed: there is nothing to undo" in refused


def test_a_plan_of_several_tables_says_once_for_how_many_runs_wait(lake: Lake, capsys: Capture) -> None:
    lake.another("other")
    assert "runs wait" not in said(capsys, "plan", "--all", "--retain-last", "1")
    facts(capsys, *EXPIRE)
    shown = said(capsys, "plan", "--all", "--retain-last", "1")
    assert shown.count("runs wait for 1 table\n") == 1
    assert "`firnline runs` shows the runs that wait" in shown


def test_a_search_tells_that_nothing_young_is_ever_removed(lake: Lake, capsys: Capture) -> None:
    told = "counts, by the store's clock; nothing younger than 24 h is ever removed\n"
    assert told in said(capsys, "orphans", "lake.ns.events", "--older-than", "1h")
    assert "ever removed" not in said(capsys, "orphans", "lake.ns.events")


def test_a_cutoff_is_told_to_the_minute(lake: Lake, capsys: Capture) -> None:
    shown = said(capsys, "plan", "lake.ns.events", "--older-than", "2020-01-01")
    assert "ref main: newer than 2020-01-01 00:00 UTC" in shown
    assert EXACT.findall(shown) == []


# ---------------------------------------------------------------- history


def test_history_says_that_it_is_off_and_what_was_purged_all_the_same(lake: Lake, capsys: Capture) -> None:
    done = facts(capsys, *EXPIRE, "--grace", "0s")
    shown = facts(capsys, "history", "lake.ns.events")
    assert shown["remembers"] is False
    assert sum(day["expired"] for day in shown["days"]) == len(done["expired"])
    assert sum(day["purged_bytes"] for day in shown["days"]) == done["outcomes"]["deleted"]["bytes"]
    shown = said(capsys, "history", "lake.ns.events")
    assert shown.splitlines()[0] == "lake.ns.events: 2 live snapshots"
    assert "history is off for this table" in shown
    lake.another("other")
    several = said(capsys, "history", "lake.ns.*")
    assert re.search(r"^  lake.ns.events +2 +- ", several, re.MULTILINE)
    assert several.count("history is off for 2 tables") == 1
    assert several.count("`history: 180d` in firnline.yaml") == 1


def test_history_that_is_on_tells_each_run_once(lake: Lake, capsys: Capture) -> None:
    lake.policy("history: 10y\n")
    done = facts(capsys, *EXPIRE, "--grace", "0s")
    shown = facts(capsys, "history", "lake.ns.events")
    assert shown["remembers"] is True
    assert sum(day["expired"] for day in shown["days"]) == len(done["expired"])
    assert sum(day["purged_bytes"] for day in shown["days"]) == done["outcomes"]["deleted"]["bytes"]
    assert "history is off" not in said(capsys, "history", "lake.ns.events")


# ---------------------------------------------------------------- paths from here


def test_a_table_and_its_files_are_named_from_this_folder(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = SmallTable(QuickFiles(), f"file://{tmp_path}/warehouse/t1")
    for _ in range(4):
        made.append(1)
    made.publish()
    monkeypatch.chdir(tmp_path / "warehouse")
    whole = facts(capsys, "plan", f"{tmp_path}/warehouse/t1", "--retain-last", "1", "--older-than", "1d")
    for named in ("./t1", "../warehouse/t1", "t1/"):
        here = facts(capsys, "plan", named, "--retain-last", "1", "--older-than", "1d")
        assert (here["table"], here["expire"]) == (whole["table"], whole["expire"])
    data = f"t1/data/{next(each.name for each in Path('t1/data').iterdir())}"
    assert facts(capsys, "why", "./t1", data)["kept"] is True
    assert facts(capsys, "erase", "./t1", data)["files"] == [f"{tmp_path}/warehouse/{data}"]
    assert "a folder here has that name; a path has a slash: ./t1" in said(capsys, "plan", "t1", code=10)
    run_ = facts(capsys, "expire", "./t1", "--retain-last", "1", "--older-than", "1d", "--yes")["run"]
    assert facts(capsys, "runs", "show", f"./t1@{run_.rpartition('@')[2]}")["state"] == "committed"
    monkeypatch.chdir(tmp_path / "warehouse" / "t1")
    assert facts(capsys, "undo", ".")["state"] == "undone"


def test_undo_of_a_table_takes_back_no_search(lake: Lake, capsys: Capture) -> None:
    """An expiry lies before it: to call off the search would end well, and bring nothing back."""
    facts(capsys, *EXPIRE)
    garbage = Path("ns/events/data/garbage.parquet")
    garbage.parent.mkdir(parents=True, exist_ok=True)
    garbage.write_bytes(b"x")
    date(garbage, now_ms() - 30 * DAY_MS)
    facts(capsys, "orphans", "lake.ns.events", "--yes")
    refused = said(capsys, "undo", "lake.ns.events", code=2)
    assert "is no expiry" in refused


def test_a_broken_line_is_no_answer_to_a_question(lake: Lake, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """A JVM that dies ends what is read from it: much may have been done by then."""

    def broken(*_: object, **__: object) -> None:
        raise EOFError

    monkeypatch.setattr("firnline.lake.Lake.purge", broken)
    named = facts(capsys, *EXPIRE)["run"]
    told = said(capsys, "purge", named, code=130)
    assert "interrupted" in told
    assert "nothing was changed" not in told
