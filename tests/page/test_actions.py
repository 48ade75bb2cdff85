"""What is done from the page: those who approve see all of it, and it leaves nothing behind that nobody asked for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from firnline.journal.events import RunState
from firnline.lake import open_lake
from firnline.plans.pages import number
from firnline.web.facts.runs import run_report
from firnline.web.html.runs import run_sections

from .conftest import EVIL, TABLE, OpenPage, said
from .test_figures import Words


@pytest.mark.parametrize(
    ("rules", "status", "said"),
    [("keep: {last: 100}\n", 400, "nothing of"), ("blast-radius: 1%\n", 409, "blast")],
)
def test_a_plan_that_nobody_could_approve_leaves_no_run(page: OpenPage, rules: str, status: int, said: str) -> None:
    Path("firnline.yaml").write_text(f"audit: {Path.cwd()}/log\n{rules}")
    answer = page.call("/api/do/plan", table=TABLE, by="ann")
    assert (answer.status_code, open_lake().runs(TABLE)) == (status, []), answer.text
    assert said in answer.text
    assert page.post("/do/plan", {"table": TABLE, "csrf": page.log_in()}).status_code == status
    assert open_lake().runs(TABLE) == []
    assert list(Path.cwd().glob("**/plan.json*")) == []


def test_a_plan_is_saved_as_a_run_that_waits(page: OpenPage) -> None:
    run = page.call("/api/do/plan", table=TABLE, by="ann").json()["run"]
    (found,) = open_lake().runs(TABLE)
    assert (found.id, found.state.value, found.run.is_meant) == (run, "planned", False)


def shown(page: OpenPage, run: str) -> str:
    answer = page.get("/run", params={"id": run})
    assert answer.status_code == 200
    return answer.text


def test_who_approves_sees_the_refs_that_go(page: OpenPage) -> None:
    run = open_lake().plan(TABLE, drop=[EVIL], save=True).plan.run
    assert run is not None
    page.log_in()
    words = Words(shown(page, run)).texts
    assert EVIL in words[words.index("expire refs:") :]
    assert "approve and carry out" in words


def test_a_refused_plan_says_so_and_has_no_button(page: OpenPage) -> None:
    Path("firnline.yaml").write_text(f"audit: {Path.cwd()}/log\nblast-radius: 1%\n")
    plan = open_lake().plan(TABLE, save=True).plan
    assert plan.run is not None
    assert plan.refused is not None
    page.log_in()
    words = Words(shown(page, plan.run)).texts
    assert f"refused: {plan.refused}" in words
    assert "undo" in words
    assert "approve and carry out" not in words


@pytest.mark.parametrize("joined", [True, False])
def test_who_approves_sees_the_orphans_that_go(
    page: OpenPage, capsys: pytest.CaptureFixture[str], joined: bool
) -> None:
    """No file of a store is old enough within a test: what the command found stands in the plan of a real run."""
    found = said(capsys, "orphans", TABLE)
    report = run_report(open_lake(), open_lake().plan(TABLE, save=True).plan.run or "")
    plan = {**report.status.run.plan, **({"orphans": found} if joined else found)}
    changed = replace(report, status=replace(report.status, run=replace(report.status.run, plan=plan)))
    texts = Words(run_sections(changed)).texts
    assert any(each.startswith(f"orphans older than {found['older_than']}") for each in texts)
    for name, each in found["classes"].items():
        if each["files"]:
            assert texts[texts.index(name) + 1] == number(each["files"])
        else:
            assert name not in texts


def test_who_approves_sees_what_is_archived(page: OpenPage) -> None:
    tiers = f"archive: cold\ntiers:\n  cold:\n    root: file://{Path.cwd()}/cold\ncatalogs:\n  cold: {{archive: off}}\n"
    Path("firnline.yaml").write_text(f"audit: {Path.cwd()}/log\nblast-radius: 100%\n{tiers}")
    told = Path(".pyiceberg.yaml")
    more = f"  cold:\n    type: sql\n    uri: sqlite:///{Path.cwd()}/cold.db\n    warehouse: file://{Path.cwd()}/cold\n"
    told.write_text(told.read_text() + more)
    plan = open_lake().plan(TABLE, save=True).plan
    assert plan.run is not None
    assert plan.archive is not None
    words = Words(shown(page, plan.run)).texts
    assert any(each.startswith(f"archive to cold, as {plan.archive.table} in {plan.archive.root}") for each in words)
    handed = words[words.index(f"archive: {len(plan.archive.snapshots)}") :]
    assert set(map(str, plan.archive.snapshots)) <= set(handed)


def test_a_run_takes_one_approval(page: OpenPage) -> None:
    csrf = page.log_in()
    run = open_lake().plan(TABLE, save=True).plan.run
    assert run is not None
    lake = open_lake()
    lake.approve(run, by="bob", note="looked <b>twice</b>")
    assert lake.run(run).state is RunState.PLANNED
    words = Words(shown(page, run)).texts
    assert "approve and carry out" not in words
    assert "approved by bob: looked <b>twice</b>" in words
    for answer in (
        page.call("/api/do/approve", run=run, by="ann"),
        page.post("/do/approve", {"run": run, "csrf": csrf}),
    ):
        assert answer.status_code == 400
        assert "approved before, by bob" in answer.text
    found = open_lake().run(run).run
    assert [each.detail.get("by") for each in found.events if each.detail.get("by")] == ["bob"]
    assert [each.news["to"] for each in open_lake().audit() if each.news["kind"] == "page"] == [], "nothing was done"
