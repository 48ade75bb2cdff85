"""Commits through the library: what they leave, and what becomes of them when a process dies or others come between."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import icechunk
import pytest

from firnline.errors import LeaseHeld, RefusedForSafety, UnreadableMetadata
from firnline.formats.icechunk.committing.abandoning import Abandoned
from firnline.formats.icechunk.committing.carrying import RepositoryChange
from firnline.formats.icechunk.committing.library import LibraryRepository
from firnline.formats.icechunk.committing.proofs import proof_in
from firnline.formats.icechunk.committing.properties import read_properties
from firnline.journal.layout import PROPERTIES
from firnline.model.snapshots import MAIN, Ref, RefKind
from firnline.ports.catalogs import Attempt, StepwiseCommit, SwapOutcome

from .growing import SPECS, storage
from .repositories import STORE, lying
from .stepping import Countdown, CutStore, Died, Stepped, attempt_at, step_from, stepped
from .test_library_expiry import EPOCH, timedelta

pytestmark = pytest.mark.parametrize("spec", SPECS)
NOTES = {"firnline.records": "elsewhere"}


def everything(made: Stepped) -> Attempt:
    """Returns a commit of every kind of step: a tag comes, a tag and a branch go, snapshots expire, a note is made."""
    gone = [Ref("side", RefKind.BRANCH, made.snapshots[7]), Ref("old", RefKind.TAG, made.snapshots[3])]
    come = [Ref("hold", RefKind.TAG, made.snapshots[2])]
    return attempt_at(made.writing(), step_from(made.version(), made.time(5), gone, come, NOTES))


def is_done(made: Stepped, attempt: Attempt) -> None:
    """Raises AssertionError unless the repository is exactly what the step says, by the library's own word."""
    after = attempt.step.document["repository"]
    found = made.read()
    assert set(found.refs) == set(after.refs)
    assert {each: found.snapshots[each].parent for each in found.snapshots} == {
        each: after.snapshots[each].parent for each in after.snapshots
    }
    assert made.lines() == {
        (str(ref.kind), ref.name): [each.id for each in after.ancestry(ref.snapshot)] for ref in after.refs
    }
    assert read_properties(STORE, made.location) == attempt.step.document["properties"]


def noted(made: Stepped, what: str) -> int:
    return sum(each.endswith(what) for each in lying(made.commits.folder, "_firnline/commits"))


def test_a_commit_of_every_step(tmp_path: Path, spec: int) -> None:
    made = stepped(tmp_path / "r", spec)
    attempt, before = everything(made), lying(tmp_path / "r", "chunks")
    assert isinstance(made.writing(), StepwiseCommit)
    assert json.loads(json.dumps(attempt.proof)) == attempt.proof
    assert made.writing().commit(attempt) is SwapOutcome.DONE
    is_done(made, attempt)
    assert (noted(made, ".begun"), noted(made, ".done")) == (1, 1)
    assert made.writing().landed(attempt.proof, made.version())
    assert made.writing().commit(attempt) is SwapOutcome.DONE
    assert lying(tmp_path / "r", "chunks") == before
    assert made.snapshots[1] in lying(tmp_path / "r", "snapshots")


@pytest.mark.parametrize("way", ["landed", "commit"])
def test_a_process_dies_before_any_request(tmp_path: Path, spec: int, way: str) -> None:
    """Whoever comes next carries the commit to its end, if it was begun; else nothing was changed."""
    whole = Countdown()
    first = stepped(tmp_path / "whole", spec)
    first.writing(CutStore(whole)).commit(replace(everything(first), still=whole))
    assert whole.asked == 8
    for left in range(whole.asked):
        made, cut = stepped(tmp_path / f"r-{left}", spec), Countdown(left)
        attempt = everything(made)
        with pytest.raises(Died):
            made.writing(CutStore(cut)).commit(replace(attempt, still=cut))
        record = json.loads(json.dumps(attempt.proof))
        begun = noted(made, ".begun") == 1
        assert begun == (left > 0)
        if way == "landed":
            assert made.writing().landed(record, made.version()) == begun
        if not begun or way == "commit":
            assert made.writing().commit(attempt) is SwapOutcome.DONE
        is_done(made, attempt)
        assert noted(made, ".done") == 1


def test_a_process_dies_twice(tmp_path: Path, spec: int) -> None:
    made = stepped(tmp_path / "r", spec)
    attempt = everything(made)
    with pytest.raises(Died):
        made.writing().commit(replace(attempt, still=Countdown(1)))
    for left in (1, 2, 1, 0):
        cut = Countdown(left)
        with pytest.raises(Died):
            made.writing(CutStore(cut)).landed(attempt.proof, made.version(), cut)
    assert made.writing().landed(attempt.proof, made.version())
    is_done(made, attempt)


def test_a_lease_that_is_lost_stops_the_next_request(tmp_path: Path, spec: int) -> None:
    made = stepped(tmp_path / "r", spec)
    attempt = everything(made)

    def still() -> None:
        raise LeaseHeld("another process works on it")

    with pytest.raises(LeaseHeld):
        made.writing().commit(replace(attempt, still=still))
    assert set(made.read().refs) == set(attempt.step.base.document["repository"].refs)


def new_tag(made: Stepped) -> None:
    made.repo.create_tag("mine", made.snapshots[1])


def new_commit(made: Stepped) -> None:
    made.commits.commit(MAIN)


def new_note(made: Stepped) -> None:
    STORE.put(f"{made.location}/{PROPERTIES}", b'{"firnline.hold.x": "1"}')


@pytest.mark.parametrize("between", [new_tag, new_commit, new_note])
def test_what_came_between_decision_and_commit_wins(
    tmp_path: Path, spec: int, between: Callable[[Stepped], None]
) -> None:
    made = stepped(tmp_path / "r", spec)
    attempt = everything(made)
    between(made)
    before = made.read()
    assert made.writing().commit(attempt) is SwapOutcome.LOST
    assert made.read() == before
    assert not made.writing().landed(attempt.proof, made.version())
    again = attempt_at(made.writing(), step_from(made.version(), made.time(5)))
    assert made.writing().commit(again) is SwapOutcome.DONE
    is_done(made, again)


def cut_at_first_request(made: Stepped, attempt: Attempt) -> None:
    """Lets a commit be begun, and its process die before it changes anything."""
    cut = Countdown(0)
    with pytest.raises(Died):
        made.writing().commit(replace(attempt, still=cut))
    assert noted(made, ".begun") == 1


def test_a_tag_that_comes_after_the_last_look_holds_its_snapshot(tmp_path: Path, spec: int) -> None:
    """The commit was begun, then a tag came on a snapshot that is about to go: it stays, and the rest is done."""
    made = stepped(tmp_path / "r", spec)
    attempt = attempt_at(made.writing(), step_from(made.version(), made.time(6)))
    assert made.snapshots[1] in attempt.proof["gone"]
    cut_at_first_request(made, attempt)
    new_tag(made)
    assert made.writing().landed(attempt.proof, made.version())
    lines = made.lines()
    assert lines["tag", "mine"][0] == made.snapshots[1]
    first, *between, last = lines["branch", MAIN]
    assert (first, last) == (made.snapshots[6], made.snapshots[0])
    # Version 2 leaves what a ref points to where it comes right before what stays.
    assert not between if spec == 1 else not set(between) & (set(attempt.proof["gone"]) - {made.snapshots[1]})
    assert made.snapshots[1] in made.read().snapshots
    session = made.repo.readonly_session(tag="mine")
    assert session.snapshot_id == made.snapshots[1]


def test_a_ref_that_moved_is_not_deleted(tmp_path: Path, spec: int) -> None:
    made = stepped(tmp_path / "r", spec)
    attempt = everything(made)
    cut_at_first_request(made, attempt)
    newer = made.commits.commit("side")
    before = made.read()
    with pytest.raises(RefusedForSafety, match=r"side was to be deleted .* and is at " + newer):
        made.writing().commit(attempt)
    assert made.read() == before
    assert not made.writing().landed(attempt.proof, made.version())
    assert made.writing().commit(attempt) is SwapOutcome.LOST
    assert noted(made, ".given-up") == 1


def test_a_ref_that_moves_in_the_middle_is_not_deleted(tmp_path: Path, spec: int) -> None:
    """It moves after the first look at all refs, before the one that is right before its deletion."""
    made = stepped(tmp_path / "r", spec)
    attempt, asked = everything(made), Countdown()

    def still() -> None:
        asked()
        if asked.asked == 2:
            made.commits.commit("side")

    with pytest.raises(RefusedForSafety, match="side was to be deleted"):
        made.writing().commit(replace(attempt, still=still))
    found = made.read()
    assert "side" in found.branches
    assert "old" in found.tags
    assert found.tags["hold"] == made.snapshots[2]
    assert made.snapshots[1] in found.snapshots


@dataclass(frozen=True)
class Beaten(LibraryRepository):
    """A writer's commit comes in right before a deletion, after the last look at the branch."""

    commit: Callable[[str], str]

    def delete(self, ref: Ref) -> None:
        if ref.kind is RefKind.BRANCH:
            self.commit(ref.name)
        super().delete(ref)


def test_a_commit_to_a_branch_that_is_just_deleted_is_named(tmp_path: Path, spec: int) -> None:
    made, written = stepped(tmp_path / "r", spec), list[str]()

    def write(branch: str) -> str:
        written.append(made.commits.commit(branch))
        return written[-1]

    attempt = everything(made)
    library = Beaten(made.location, LibraryRepository.at(made.location, {}).opened, write)
    proof = proof_in(attempt.proof, made.location)
    begun_ms = time.time_ns() // 1_000_000
    with pytest.raises(Abandoned) as told:
        RepositoryChange(STORE, made.read(), library, proof, lambda: None, begun_ms).carry_out()
    assert told.value.serious
    assert written[0] in told.value.why
    assert made.snapshots[4] in made.read().snapshots
    made.repo.create_branch("saved", written[0])
    assert made.lines()["branch", "saved"][0] == written[0]


def test_a_cut_commit_that_finds_another_note_is_given_up(tmp_path: Path, spec: int) -> None:
    """A hold was noted while the commit was cut: it is decided anew, whatever the record says."""
    made = stepped(tmp_path / "r", spec)
    attempt = everything(made)
    cut_at_first_request(made, attempt)
    new_note(made)
    before = made.read()
    assert not made.writing().landed(attempt.proof, made.version())
    assert made.read() == before
    assert read_properties(STORE, made.location) == {"firnline.hold.x": "1"}


def test_two_commits_at_once(tmp_path: Path, spec: int) -> None:
    """Both were begun from one base, one inside the other: it ends as the later threshold alone would."""
    made, alone = stepped(tmp_path / "r", spec), stepped(tmp_path / "alone", spec)
    early = attempt_at(made.writing(), step_from(made.version(), made.time(4)))
    late = attempt_at(made.writing(), step_from(made.version(), made.time(6)))

    def still() -> None:
        assert made.writing().commit(late) is SwapOutcome.DONE

    assert made.writing().commit(replace(early, still=still)) is SwapOutcome.DONE
    alone.writing().commit(attempt_at(alone.writing(), step_from(alone.version(), alone.time(6))))
    assert numbered(made) == numbered(alone)
    is_done(made, late)


def numbered(made: Stepped) -> dict[Any, list[int]]:
    return {ref: [made.snapshots.index(each) for each in line] for ref, line in made.lines().items()}


@pytest.mark.parametrize("other", [3, 4, 5, 6])
def test_the_library_expires_beside(tmp_path: Path, spec: int, other: int) -> None:
    """Its own expiry comes right before ours is sent: it ends as the later threshold of the two alone would."""
    made, alone = stepped(tmp_path / "r", spec), stepped(tmp_path / "alone", spec)
    attempt = attempt_at(made.writing(), step_from(made.version(), made.time(4)))

    def still() -> None:
        made.repo.expire_snapshots(EPOCH + timedelta(microseconds=made.time(other)))

    assert made.writing().commit(replace(attempt, still=still)) is SwapOutcome.DONE
    later = alone.time(max(4, other))
    assert alone.writing().commit(attempt_at(alone.writing(), step_from(alone.version(), later))) is SwapOutcome.DONE
    assert numbered(made) == numbered(alone)


def test_the_cutoff_is_exclusive_to_the_microsecond(tmp_path: Path, spec: int) -> None:
    for past, expired in ((0, False), (1, True)):
        made = stepped(tmp_path / f"r-{past}", spec)
        attempt = attempt_at(made.writing(), step_from(made.version(), made.time(4) + past))
        assert (made.snapshots[4] in attempt.proof["gone"]) == expired
        assert made.writing().commit(attempt) is SwapOutcome.DONE
        is_done(made, attempt)
        assert (made.snapshots[4] in made.read().snapshots) != expired


def test_a_deleted_tag_cannot_come_again(tmp_path: Path, spec: int) -> None:
    made = stepped(tmp_path / "r", spec)
    made.repo.delete_tag("old")
    step = step_from(made.version(), create=[Ref("old", RefKind.TAG, made.snapshots[3])])
    with pytest.raises(RefusedForSafety, match=r"a tag old was deleted once .* never gives its name again"):
        made.writing().prepare(attempt_at(made.writing(), step_from(made.version())).table, step)


def test_a_tag_that_was_deleted_while_the_commit_was_cut(tmp_path: Path, spec: int) -> None:
    """The tag was to hold a snapshot that expires: without it the commit is not carried on."""
    made, cut = stepped(tmp_path / "r", spec), Countdown(1)
    attempt = everything(made)
    with pytest.raises(Died):
        made.writing().commit(replace(attempt, still=cut))
    made.repo.delete_tag("hold")
    before = made.read()
    assert not made.writing().landed(attempt.proof, made.version())
    assert made.read() == before


def test_a_ref_is_not_made_where_nothing_is(tmp_path: Path, spec: int) -> None:
    """The library of 1.x makes a branch of a snapshot that is not there, and nobody could read the repository then."""
    made = stepped(tmp_path / "r", spec)
    base = made.version()
    nowhere = Ref("back", RefKind.BRANCH, "1CECHNKREP0F1RSTCMTG")
    attempt = attempt_at(made.writing(), step_from(base, create=[Ref("back", RefKind.BRANCH, made.snapshots[2])]))
    forged = {**attempt.proof, "create": [["branch", nowhere.name, nowhere.snapshot]]}
    with pytest.raises(RefusedForSafety, match="cannot be made"):
        made.writing().commit(replace(attempt, proof=forged))
    assert made.version().location == base.location


def test_a_branch_comes_back_to_where_it_was(tmp_path: Path, spec: int) -> None:
    made = stepped(tmp_path / "r", spec)
    side = Ref("side", RefKind.BRANCH, made.snapshots[7])
    before = made.version()
    drop = attempt_at(made.writing(), step_from(before, delete=[side]))
    assert made.writing().commit(drop) is SwapOutcome.DONE
    base = made.version()
    document = {**before.document, "threshold_us": None, "gone": []}
    back = attempt_at(made.writing(), replace(drop.step, base=base, document=document))
    assert made.writing().commit(back) is SwapOutcome.DONE
    assert made.read() == before.document["repository"] or spec == 2
    assert made.lines()["branch", "side"] == [made.snapshots[each] for each in (7, 2, 1, 0)]


def test_a_ref_that_the_library_does_not_see(tmp_path: Path, spec: int) -> None:
    """Its expiry would not hold what only such a tag holds."""
    if spec == 2:
        pytest.skip("version 2 has the names of refs inside of `repo`")
    made = stepped(tmp_path / "r", spec)
    made.repo.create_tag("ü", made.snapshots[1])
    attempt = attempt_at(made.writing(), step_from(made.version(), made.time(5)))
    if len(made.repo.list_tags()) == 3:
        pytest.skip(f"icechunk {icechunk.__version__} lists it")
    with pytest.raises(RefusedForSafety, match="does not see the tag"):
        made.writing().commit(attempt)
    assert noted(made, ".begun") == 0


def test_a_step_that_the_library_would_not_take(tmp_path: Path, spec: int) -> None:
    """What is decided must be what the library does: no snapshot more, no snapshot less, no line another way."""
    made = stepped(tmp_path / "r", spec)
    step = step_from(made.version(), made.time(4))
    less = replace(step, document={**step.document, "gone": step.document["gone"][1:]})
    more = replace(step, document={**step.document, "gone": [*step.document["gone"], made.snapshots[5]]})
    for wrong, word in ((less, "would go, which is to stay"), (more, "would stay, which is to go")):
        with pytest.raises(RefusedForSafety, match=word):
            attempt_at(made.writing(), wrong)
    other = replace(step, document={**step.document, "repository": made.read()})
    with pytest.raises(RefusedForSafety, match="another line of ancestors"):
        attempt_at(made.writing(), other)


def test_refs_that_no_commit_moves(tmp_path: Path, spec: int) -> None:
    made = stepped(tmp_path / "r", spec)
    side, main = Ref("side", RefKind.BRANCH, made.snapshots[7]), Ref(MAIN, RefKind.BRANCH, made.snapshots[6])
    for moved in (side, main):
        step = step_from(made.version(), delete=[moved], create=[replace(moved, snapshot=made.snapshots[2])])
        with pytest.raises(RefusedForSafety, match="would be moved"):
            attempt_at(made.writing(), step)
    with pytest.raises(RefusedForSafety, match="would be deleted"):
        attempt_at(made.writing(), step_from(made.version(), delete=[main]))


FORGED = [
    {"id": "../../x"},
    {"id": "00000000-0000-0000-0000-000000000000/../x"},
    {"delete": [["branch", "main", "1CECHNKREP0F1RSTCMT0"]]},
    {"delete": [["note", "x", "1CECHNKREP0F1RSTCMT0"]]},
    {"create": [["tag", "../x", "1CECHNKREP0F1RSTCMT0"]]},
    {"create": [["tag", "x", "../../x"]]},
    {"create": [["tag", "x"]]},
    {"gone": ["x"]},
    {"threshold_us": True},
    {"threshold_us": "1"},
    {"threshold_us": 10**30},
    {"properties": {"a": 1}},
    {"note": []},
    {"parents": {"x": None}},
    {"refs": None},
]


@pytest.mark.parametrize("forged", FORGED, ids=[json.dumps(each)[:40] for each in FORGED])
def test_a_record_is_no_authority(tmp_path: Path, spec: int, forged: dict[str, Any]) -> None:
    made = stepped(tmp_path / "r", spec)
    attempt = everything(made)
    cut_at_first_request(made, attempt)
    before = made.read()
    with pytest.raises(RefusedForSafety, match="no commit does"):
        made.writing().landed({**attempt.proof, **forged}, made.version())
    assert made.read() == before


def test_a_threshold_that_was_edited_takes_nothing_else(tmp_path: Path, spec: int) -> None:
    """The record's threshold was moved on: more would expire than it names, so nothing does."""
    made = stepped(tmp_path / "r", spec)
    attempt = attempt_at(made.writing(), step_from(made.version(), made.time(4)))
    cut_at_first_request(made, attempt)
    before = made.read()
    assert not made.writing().landed({**attempt.proof, "threshold_us": made.time(6)}, made.version())
    assert made.read() == before


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"a": 1}', b"\xff"])
def test_a_damaged_note_is_not_taken_for_none(tmp_path: Path, spec: int, text: bytes) -> None:
    made = stepped(tmp_path / "r", spec)
    attempt = everything(made)
    assert read_properties(STORE, made.location) == {}
    STORE.put(f"{made.location}/{PROPERTIES}", text)
    with pytest.raises(UnreadableMetadata, match=PROPERTIES):
        made.writing().commit(attempt)
    assert noted(made, ".begun") == 0


def test_notes_come_change_and_go(tmp_path: Path, spec: int) -> None:
    made = stepped(tmp_path / "r", spec)
    for said in ({"a": "1"}, {"a": "2", "ü": "\ud800"}, {}, {"b": "3"}):
        attempt = attempt_at(made.writing(), step_from(made.version(), properties=said))
        assert made.writing().commit(attempt) is SwapOutcome.DONE
        assert read_properties(STORE, made.location) == said
    assert icechunk.Repository.open(storage(made.commits.folder)).list_tags() == {"old", "young"}
