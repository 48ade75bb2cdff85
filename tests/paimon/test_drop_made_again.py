"""A drop takes what its plan saw, and nothing that has the same name: a branch made again, a tag that was moved."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from firnline.errors import FirnlineError, RefusedForSafety
from firnline.testing.faults import Answer, Died, Dying, Fault, PortRequest
from harness.paimon.java_table import JavaTable
from harness.paimon.shapes import MAIN
from harness.paimon.worlds import Paimon

from .small import Copy, row
from .test_drop import AT_ONCE, LATER, drop_side
from .test_interference import OfKey

Act = Callable[[JavaTable], None]


@dataclass
class InFolder:
    """A fault that only sees requests for objects in a folder of this name."""

    part: str
    fault: Fault

    def pass_on(self, request: PortRequest[Answer]) -> Answer:
        return self.fault.pass_on(request) if self.part in request.key else request.send()


def made_again(table: JavaTable) -> None:
    """The branch has the same numbers as before, and other rows."""
    table.drop_branch("side")
    table.create_branch("side", "two")
    table.write("side", [row(90, "new")])


def moved(table: JavaTable) -> None:
    table.drop_tag(MAIN, "short")
    table.tag(MAIN, "short", 6)


def tagged(table: JavaTable) -> None:
    """A tag of the branch that came since the plan is nobody's to drop."""
    table.tag("side", "fresh", 3)


def shortened(table: JavaTable) -> None:
    table.drop_branch("side")
    table.create_branch("side", "two")


def rows_of(table: JavaTable, name: str) -> list[object]:
    opened = table.open(name) if name == "side" else table.open(MAIN, {"scan.tag-name": name})
    return sorted(table.rows.read(opened))


CASES = pytest.mark.parametrize(
    ("name", "act"), [("side", made_again), ("side", tagged), ("side", shortened), ("short", moved)]
)


@pytest.mark.sampled(2)
@CASES
def test_what_was_made_again_while_the_question_was_open_stays(both: Paimon, copy: Copy, name: str, act: Act) -> None:
    table, after = JavaTable(both.java, copy.folder / "t"), {}

    def answered(plan: object) -> None:
        act(table)
        after.update(copy.picture())

    with pytest.raises(RefusedForSafety, match=f"{name} moved on since the plan"):
        copy.process().drop(copy.table, [name], **AT_ONCE, confirm=answered)
    assert copy.picture() == after
    assert rows_of(table, name)
    assert not copy.missing()


@pytest.mark.sampled(2)
@CASES
def test_what_was_made_again_before_a_resume_stays(both: Paimon, copy: Copy, name: str, act: Act) -> None:
    """The process died with the plan written and nothing done."""
    dying = OfKey(Dying(1, when="before"), ".begun")
    with suppress(Died, FirnlineError):
        copy.process(dying).drop(copy.table, [name], **LATER)
    (ended,) = copy.process().runs(copy.table)
    assert ended.state == "committing"
    table = JavaTable(both.java, copy.folder / "t")
    act(table)
    after = copy.picture()
    copy.wait_for_lease()
    with pytest.raises(RefusedForSafety, match=f"{name} moved on since the plan"):
        copy.process().advance(str(ended.run.id))
    assert copy.picture() == after
    assert rows_of(table, name)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("at", ["tag/tag-two", "snapshot/snapshot-2", "snapshot/snapshot-3", "schema/schema-0"])
def test_what_was_made_again_after_a_drop_was_cut_stays(both: Paimon, copy: Copy, at: str) -> None:
    dying = OfKey(Dying(1, when="after"), f"branch-side/{at}")
    with suppress(Died, FirnlineError):
        drop_side(copy, dying)
    assert not Path(copy.table, "branch/branch-side", at).exists()
    table = JavaTable(both.java, copy.folder / "t")
    made_again(table)
    rows, after = rows_of(table, "side"), copy.picture()
    copy.wait_for_lease()
    with pytest.raises(RefusedForSafety):
        copy.process().advance(str(copy.process().runs(copy.table)[-1].run.id))
    assert copy.picture() == after
    assert rows_of(table, "side") == rows
    assert not copy.missing()


def test_what_is_as_it_was_goes(copy: Copy) -> None:
    """The plan says what it saw, and a commit that finds just that takes it."""
    plans = []
    copy.process().drop(copy.table, ["side"], **AT_ONCE, confirm=lambda plan: plans.append(plan.to_json()["seen"]))
    assert plans[0].keys() == {"side:2", "side:3", "side:two"}
    assert plans[0]["side:2"] == plans[0]["side:two"]
    assert not Path(copy.table, "branch/branch-side/snapshot").exists()


def _refused_drop(both: Paimon, copy: Copy) -> str:
    """Returns a drop that stays planned: its branch was made again while the question was open."""
    table = JavaTable(both.java, copy.folder / "t")
    with pytest.raises(RefusedForSafety, match="side moved on since the plan"):
        copy.process().drop(copy.table, ["side"], **AT_ONCE, confirm=lambda plan: made_again(table))
    (refused,) = copy.process().runs(copy.table)
    assert refused.state == "planned"
    return str(refused.id)


def _saved_expiry(copy: Copy) -> str:
    """Returns an expiry that was meant, and whose process died before it had the lease."""
    with pytest.raises(Died):
        copy.expire(InFolder("/lease/", Dying(1, when="before")))
    saved = copy.process().runs(copy.table)[-1]
    assert saved.state == "planned"
    return str(saved.id)


def _committed_expiry(copy: Copy) -> str:
    run: str = copy.expire(grace="1m").id
    copy.clock.advance(61_000)
    return run


@pytest.mark.sampled(1)
@pytest.mark.parametrize("other", [_saved_expiry, _committed_expiry])
def test_a_drop_that_is_refused_stops_no_other_run_of_the_table(
    both: Paimon, copy: Copy, other: Callable[[Copy], str]
) -> None:
    refused = _refused_drop(both, copy)
    carried = other(copy)
    copy.wait_for_lease()
    table = JavaTable(both.java, copy.folder / "t")
    rows = rows_of(table, "side")
    found = {each.id: each for each in copy.process().resume(copy.table)}
    assert found[carried].state == "done"
    assert found[refused].state == "planned"
    assert "side moved on since the plan" in found[refused].waits
    assert isinstance(found[refused].refusal, RefusedForSafety)
    assert rows_of(table, "side") == rows
    assert not copy.missing()
    copy.process().undo(refused)
    assert copy.process().resume(copy.table) == []


@pytest.mark.parametrize("other", [_saved_expiry, _committed_expiry])
def test_a_drop_of_what_is_gone_stops_no_other_run_of_the_table(
    both: Paimon, copy: Copy, other: Callable[[Copy], str]
) -> None:
    """It was refused, and then the branch went in another way."""
    refused = _refused_drop(both, copy)
    JavaTable(both.java, copy.folder / "t").drop_branch("side")
    carried = other(copy)
    copy.wait_for_lease()
    found = {each.id: each for each in copy.process().resume(copy.table)}
    assert found[carried].state == "done"
    assert found[refused].state in ("planned", "cancelled")
    assert not copy.missing()
