"""What no ref leads to and no threshold takes alone: it goes behind guards, a layer at a time, and whatever others do
meanwhile loses nothing. `repo` of version 2 lists such snapshots; version 1 has none.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from firnline.errors import RefusedForSafety
from firnline.formats.icechunk.committing.proofs import proof_in
from firnline.formats.icechunk.expiring import loose_ends
from firnline.model.snapshots import MAIN
from firnline.model.times import DAY_MS
from firnline.ports.catalogs import Attempt, SwapOutcome
from firnline.testing.dated import Clock
from firnline.testing.folder_process import FolderProcess
from harness.lanes import by_lane

from .growing import SPECS
from .redating import DAY_US, dated
from .repositories import needed
from .stepping import Countdown, CutStore, Died, Stepped, attempt_at, step_from, stepped

pytestmark = pytest.mark.skipif(2 not in SPECS, reason="icechunk 1.x writes version 1")
REQUESTS = 20
"""The note that the commit began, guards made and deleted, two expiries, the note that it is done."""
SOME = range(0, REQUESTS, by_lane(4, 2, 1))


def reset(folder: Path) -> Stepped:
    """Returns a repository whose branch main was reset from 9, by 8, to 6, and went on to 10."""
    found = stepped(folder, 2)
    found.snapshots += [found.commits.commit(MAIN) for _ in range(2)]
    found.repo.reset_branch(MAIN, found.snapshots[6])
    found.snapshots.append(found.commits.commit(MAIN))
    return found


def shedding(made: Stepped, threshold_us: int | None = None) -> Attempt:
    """Returns the commit that takes out 8 and 9."""
    return attempt_at(made.writing(), step_from(made.version(), threshold_us, loose=set(made.snapshots[8:10])))


def is_shed(made: Stepped, attempt: Attempt) -> None:
    after, found = attempt.step.document["repository"], made.read()
    assert (dict(found.branches), dict(found.tags)) == (after.branches, after.tags)
    assert {each.id: each.parent for each in found.snapshots.values()} == {
        each.id: each.parent for each in after.snapshots.values()
    }


@pytest.mark.parametrize("oldest", [None, 4])
def test_loose_snapshots_go_and_the_library_finds_the_repository_whole(tmp_path: Path, oldest: int | None) -> None:
    made = reset(tmp_path / "r")
    attempt = shedding(made, None if oldest is None else made.time(oldest))
    line = made.lines()["branch", MAIN]
    assert made.writing().commit(attempt) is SwapOutcome.DONE
    is_shed(made, attempt)
    repo = made.repo
    assert made.lines()["branch", MAIN] == [each for each in line if each in made.read().snapshots]
    assert repo.diff(from_snapshot_id=made.snapshots[4], to_branch=MAIN)
    assert [type(each.kind).__name__ for each in repo.ops_log()].count("ExpirationRan") >= 2
    assert made.commits.commit(MAIN) == repo.lookup_branch(MAIN)
    repo.expire_snapshots(datetime.now(UTC) - timedelta(days=1))
    summary = repo.garbage_collect(datetime.now(UTC) + timedelta(days=1))
    assert summary.snapshots_deleted == 2 + (0 if oldest is None else 2)
    assert not repo.garbage_collect(datetime.now(UTC) + timedelta(days=1), dry_run=True).snapshots_deleted


def test_a_process_dies_before_any_request(tmp_path: Path) -> None:
    whole = Countdown()
    first = reset(tmp_path / "whole")
    first.writing(CutStore(whole)).commit(replace(shedding(first), still=whole))
    assert whole.asked == REQUESTS
    for left in SOME:
        made, cut = reset(tmp_path / f"r-{left}"), Countdown(left)
        attempt = shedding(made)
        with pytest.raises(Died):
            made.writing(CutStore(cut)).commit(replace(attempt, still=cut))
        begun = made.writing().landed(json.loads(json.dumps(attempt.proof)), made.version())
        assert begun == (left > 0)
        assert made.writing().commit(attempt) is SwapOutcome.DONE
        is_shed(made, attempt)


@dataclass
class Meanwhile:
    """Lets another do something right before one request of a commit, which has looked at the repository before."""

    left: int
    act: Callable[[], object]

    def __call__(self) -> None:
        self.left -= 1
        if self.left == 0:
            self.act()


def main_goes_back(made: Stepped) -> None:
    made.repo.reset_branch(MAIN, made.snapshots[9])


def a_branch_in_the_middle(made: Stepped) -> None:
    if made.snapshots[8] in made.read().snapshots:
        made.repo.create_branch("mine", made.snapshots[8])


def main_goes_on(made: Stepped) -> None:
    made.commits.commit(MAIN)


def all_other_refs_go(made: Stepped) -> None:
    made.repo.delete_branch("side")
    made.repo.delete_tag("old")
    made.repo.reset_branch(MAIN, made.snapshots[1])


@pytest.mark.parametrize("act", [main_goes_back, a_branch_in_the_middle, main_goes_on, all_other_refs_go])
def test_whatever_others_do_before_a_request_every_line_stays_whole(
    tmp_path: Path, act: Callable[[Stepped], None]
) -> None:
    """A snapshot that is listed follows the one that it followed before. Only what was planned is gone."""
    for request in range(1, REQUESTS - 1, by_lane(4, 2, 1)):
        made = reset(tmp_path / f"r-{request}")
        attempt, before = shedding(made), made.read().snapshots

        def acting(made: Stepped = made) -> None:
            if act is not main_goes_back or made.snapshots[9] in made.read().snapshots:
                act(made)

        outcome = made.writing().commit(replace(attempt, still=Meanwhile(request, acting)))
        assert outcome is SwapOutcome.DONE
        found = made.read()
        assert before.keys() - found.snapshots.keys() <= set(made.snapshots[8:10])
        assert all(found.snapshots[each].parent == before[each].parent for each in before if each in found.snapshots)
        assert not [name for name in found.branches if name.startswith("firnline-")]
        assert made.lines().keys() == {(str(ref.kind), ref.name) for ref in found.refs}


def test_what_a_guard_held_is_let_go_where_a_commit_is_given_up(tmp_path: Path) -> None:
    """A branch that is to hold something is deleted by another as soon as it is there."""
    made = reset(tmp_path / "r")
    attempt, before = shedding(made), made.read()

    def act() -> None:
        made.repo.delete_branch(sorted(name for name in made.repo.list_branches() if name.startswith("firnline-"))[0])

    with pytest.raises(RefusedForSafety, match="would go too, which the plan does not name"):
        made.writing().commit(replace(attempt, still=Meanwhile(5, act)))
    assert made.read().snapshots == before.snapshots
    assert made.read().branches == before.branches


def test_a_guard_that_others_committed_to_stays_and_is_told(tmp_path: Path) -> None:
    made = reset(tmp_path / "r")
    attempt = shedding(made)
    mine = list[str]()

    def act() -> None:
        mine.extend(sorted(name for name in made.repo.list_branches() if name.startswith("firnline-"))[:1])
        made.commits.commit(mine[0])

    with pytest.raises(RefusedForSafety, match="delete it by hand"):
        made.writing().commit(replace(attempt, still=Meanwhile(5, act)))
    assert [name for name in made.read().branches if name.startswith("firnline-")] == mine


def test_a_record_that_names_a_loose_snapshot_which_is_not_to_go_is_refused(tmp_path: Path) -> None:
    made = reset(tmp_path / "r")
    proof = {**shedding(made).proof, "gone": []}
    with pytest.raises(RefusedForSafety, match="the loose snapshot"):
        proof_in(proof, made.location)


def long_after(policy: str = "") -> FolderProcess:
    """Returns firnline at a time when no session can be open any more that flushed what is loose."""
    return FolderProcess(clock=Clock(ahead_ms=4 * DAY_MS), policy=policy)


@pytest.mark.parametrize(
    ("keep", "gone"),
    [
        ("{last: 5}", {8, 9}),
        ("{last: 5, within: 30d}", set()),
        ("{daily: 40d}", {1, 2, 4, 6, 8, 9}),
    ],
)
def test_rules_decide_on_what_no_ref_leads_to(tmp_path: Path, keep: str, gone: set[int]) -> None:
    """The last five of main are 10, 6, 5, 4 and 3, those of side 7, 2, 1. A window keeps whatever is young."""
    made = reset(tmp_path / "r")
    plan = long_after(f"keep: {keep}").plan(made.location, blast_radius=1.0).plan
    assert {made.snapshots.index(each.id) for each in plan.expire} == gone


def test_without_a_rule_nothing_goes(tmp_path: Path) -> None:
    assert not long_after().plan(reset(tmp_path / "r").location).plan.expire


def test_what_was_left_is_what_the_librarys_collection_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan says of each loose snapshot that it leaves that it does; their objects are all that is collected then."""
    monkeypatch.setattr(loose_ends, "MOST_GUARDS", 2)
    made, process = reset(tmp_path / "r"), long_after("keep: {last: 5}")
    plan = process.plan(made.location, blast_radius=1.0).plan
    left = {each.id for each in plan.keep if "Icechunk's own collection" in str(each.reasons)}
    assert left == set(made.snapshots[8:10])
    stays = needed(made.location, made.read().snapshots.keys() - left)
    theirs = needed(made.location, left)
    summary = made.repo.garbage_collect(datetime.now(UTC) + timedelta(days=1), dry_run=True)
    assert (summary.snapshots_deleted, summary.transaction_logs_deleted) == (2, 2)
    assert summary.manifests_deleted == len(theirs.manifests.keys() - stays.manifests.keys())
    assert summary.chunks_deleted == len(theirs.chunks.keys() - stays.chunks.keys())


def test_a_loose_snapshot_whose_age_is_in_doubt_stops_a_plan(tmp_path: Path) -> None:
    """9 says that it is four days old, and was written a day ago by the store's clock. 8 is as old as it says."""
    made = reset(tmp_path / "r")
    slow = made.snapshots[9]
    dated(tmp_path / "r", slow, made.time(9) + 3 * DAY_US)
    asked: dict[str, Any] = {"blast_radius": 1.0}
    with pytest.raises(RefusedForSafety, match=f"in doubt: {slow} is of .* later by the store's clock"):
        long_after("keep: {last: 5}").plan(made.location, **asked)
    trusting = long_after(f"keep: {{last: 5}}\ntrust-snapshots: ['{slow}']")
    assert slow in {each.id for each in trusting.plan(made.location, **asked).plan.expire}
