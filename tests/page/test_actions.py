"""What is done from the page leaves nothing behind that nobody asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from firnline.lake import open_lake

from .conftest import TABLE, OpenPage


@pytest.mark.parametrize(
    ("rules", "status", "said"),
    [("keep: {last: 100}\n", 400, "nothing of"), ("blast-radius: 1%\n", 409, "blast")],
)
def test_a_plan_that_nobody_could_approve_leaves_no_run(page: OpenPage, rules: str, status: int, said: str) -> None:
    Path("firnline.yaml").write_text(f"audit: {Path.cwd()}/log\n{rules}")
    answer = page.call("/api/do/plan", table=TABLE, by="ann")
    assert (answer.status_code, open_lake().runs(TABLE)) == (status, []), answer.text
    assert said in answer.text
    page.post("/do/plan", {"table": TABLE, "csrf": page.log_in()})
    assert open_lake().runs(TABLE) == []
    assert list(Path.cwd().glob("**/plan.json*")) == []


def test_a_plan_is_saved_as_a_run_that_waits(page: OpenPage) -> None:
    run = page.call("/api/do/plan", table=TABLE, by="ann").json()["run"]
    (found,) = open_lake().runs(TABLE)
    assert (found.id, found.state.value, found.run.is_meant) == (run, "planned", False)
