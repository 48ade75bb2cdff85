"""The one question before a table is changed tells all that goes, and for how long it can still be had."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

import firnline
from firnline.cli.main import run
from firnline.cli.terminal.asking import question_of
from firnline.errors import Interrupted, Unreachable, UsageError
from firnline.lake import Lake as OpenedLake
from firnline.model.files import FileKind, Tally, Totals
from firnline.model.times import HOUR_MS
from firnline.plans.plan import Plan
from firnline.plans.stages import AwaitGrace, AwaitUndo
from tests.cli.conftest import SmallLake as Lake

EVENTS = "lake.ns.events"


def planned(opened: OpenedLake, orphans: bool) -> Plan:
    (answer,) = opened.several([EVENTS]).plan(orphans=orphans, older_than="2100-01-01", retain_last=1, blast_radius=1.0)
    assert answer.value is not None
    return answer.value


def test_what_a_search_found_is_in_the_question(lake: Lake) -> None:
    plan = planned(firnline.open(), orphans=True)
    assert plan.orphans is not None
    found = replace(plan.orphans, victims=Totals.of([(FileKind.DATA, Tally(12, 3 << 20))]))
    count = len(plan.expire)
    both = question_of(replace(plan, orphans=found))
    assert both.startswith(f"Remove {count} snapshots and 12 files, 3.0 MiB that no table needs from {EVENTS}? ")
    alone = question_of(replace(plan, orphans=found, expire=()))
    assert alone.startswith(f"Remove 12 files, 3.0 MiB that no table needs from {EVENTS}? ")
    kept = question_of(replace(plan, orphans=replace(found, refused="too many")))
    assert kept.startswith(f"Remove {count} snapshots from {EVENTS}? ")


@pytest.mark.parametrize(
    ("undo_ms", "grace_ms", "said"),
    [
        (HOUR_MS, HOUR_MS, "Nothing changes for 1h, then the files stay 1h."),
        (HOUR_MS, 0, "Nothing changes for 1h, then the files go at once."),
        (0, HOUR_MS, "Files stay 1h."),
        (0, 0, "Files go at once."),
    ],
)
def test_what_waits_to_be_called_off_does_not_go_at_once(lake: Lake, undo_ms: int, grace_ms: int, said: str) -> None:
    plan = planned(firnline.open(), orphans=False)
    assert question_of(replace(plan, stages=(AwaitUndo(undo_ms), AwaitGrace(grace_ms)))).endswith(f"? {said}")


@pytest.mark.parametrize("share", [50, -0.1, 1.01])
def test_a_cap_that_is_no_share_is_refused(lake: Lake, share: float) -> None:
    opened = firnline.open()
    with pytest.raises(UsageError, match="no share of a table"):
        opened.plan(EVENTS, blast_radius=share)
    with pytest.raises(UsageError, match="no share of a table"):
        opened.orphans(EVENTS, blast_radius=share)


def test_a_plan_that_was_stopped_has_nothing_to_be_resumed(
    lake: Lake, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a job on Spark that was cancelled: who raises it does not know what it was for."""

    def stopped(*_: object, **__: object) -> None:
        raise Interrupted("a job on Spark was stopped", hint="`firnline resume` goes on")

    monkeypatch.setattr(OpenedLake, "plan", stopped)
    assert run(["plan", EVENTS]) == 130
    said = capsys.readouterr().err
    assert "a job on Spark was stopped" in said
    assert "resume" not in said


@pytest.mark.parametrize("begun", [False, True])
def test_a_store_that_is_away_leads_to_resume_only_where_a_run_was_begun(
    lake: Lake, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, begun: bool
) -> None:
    def away(opened: OpenedLake, *_: object, **__: object) -> None:
        opened.places.has_begun = begun
        raise Unreachable("the store is away", hint="check it")

    monkeypatch.setattr(OpenedLake, "expire", away)
    assert run(["expire", EVENTS, "--yes"]) == 1
    hints = capsys.readouterr().err.splitlines()[1:]
    goes_on = "; `firnline resume` goes on with what was begun" if begun else ""
    assert hints[-1] == f"hint: check it{goes_on}"


@pytest.mark.parametrize("key", [KeyboardInterrupt, EOFError], ids=["Ctrl-C", "Ctrl-D"])
def test_who_leaves_a_question_reads_what_became_of_it_on_a_line_of_its_own(
    lake: Lake, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, key: type[BaseException]
) -> None:
    def left(prompt: str) -> str:
        sys.stderr.write(prompt)
        raise key

    monkeypatch.setattr("typer._click.termui.visible_prompt_func", left)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    assert run(["expire", EVENTS, "--retain-last", "1"]) == 130
    question, *after = capsys.readouterr().err.partition("[y/N]: ")[1:]
    assert (question, after) == ("[y/N]: ", ["\nnothing was changed\n"])
