"""An expiry that takes what no table needs with it: one plan, one record, one purge; nothing that is needed goes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from firnline.errors import RefusedForSafety, UnreadableMetadata
from firnline.journal.events import RunState
from firnline.local.delete import LocalDeleteMany
from firnline.model.files import Tally
from firnline.ops.orphans.guard import LakeGuard
from firnline.plans.explain import explain
from firnline.plans.kinds import EXPIRY
from firnline.plans.lake_wide import lake_wide_page
from firnline.testing.faults import Acting, CountingFault, Died, Dying
from harness.crowds import LEASE, Crowd
from harness.writers import Item, Writer

FULL = bool(os.environ.get("FIRNLINE_FULL"))
STRAY, YOUNG = "t/data/left.parquet", "t/data/fresh.parquet"


def lake(folder: Path) -> Crowd:
    """Returns a lake with a table of which two snapshots may go with a file of their own, and with two strays."""
    crowd = Crowd.make(folder)
    writer = crowd.table("t")
    writer.compact()
    crowd.table("neighbour", inside="t/data/neighbour")
    crowd.age(crowd.folder / "lake")
    crowd.stray(STRAY)
    crowd.stray(YOUNG, days=0.1)
    return crowd


def asked(crowd: Crowd, **more: Any) -> dict[str, Any]:
    return {"orphans": True, "older_than": crowd.clock(), "retain_last": 1, "blast_radius": 1.0, **more}


def expire(crowd: Crowd, process: Any = None, **more: Any) -> Any:
    """Returns what becomes of the table, all but its current snapshot expired and what no table needs with it."""
    several = (process or crowd.process()).several([crowd.name("t")])
    (answer,) = several.expire(**asked(crowd, **{"grace": "0s", **more}))
    if answer.problem is not None:
        raise answer.problem
    return answer.value


def expired_only(crowd: Crowd) -> set[str]:
    """Returns the data files that no snapshot but those that expire has."""
    writer = crowd.writers["t"]
    truths = [crowd.ledger.truths[each["snapshot-id"]] for each in writer.document()["snapshots"]]
    return {path for truth in truths[:-1] for path in truth.data} - set(truths[-1].data)


def strayed(crowd: Crowd, table: str = "t") -> Item:
    """Returns a data file that was written long ago and never committed."""
    item = crowd.writers[table].data_file()
    crowd.set_age(Path(item.path.removeprefix("file://")), 10)
    crowd.strays.add(item.path)
    return item


def test_one_run_removes_what_expired_and_what_nobody_needs(tmp_path: Path) -> None:
    crowd = lake(tmp_path)
    gone = expired_only(crowd)
    assert len(gone) == 6
    done = expire(crowd)
    assert (done.status.state, done.status.run.kind) == (RunState.DONE, EXPIRY)
    plan = done.status.run.plan
    assert plan["orphans"]["victims"]["files"] == 1
    assert plan["victims"]["files"] == done.status.outcomes["deleted"].files
    assert plan["stages"][-1]["files"] == plan["victims"]["files"]
    assert not (gone | {f"{crowd.lake}/{STRAY}"}) & crowd.files()
    assert f"{crowd.lake}/{YOUNG}" in crowd.files()
    assert len(crowd.process().runs(crowd.name("t"))) == 1
    crowd.check()


def test_a_plan_shows_both_and_changes_nothing(tmp_path: Path) -> None:
    crowd = lake(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    (answer,) = crowd.process().several([crowd.name("t")]).plan(**asked(crowd))
    assert answer.value is not None
    assert answer.value.orphans is not None
    assert answer.value.orphans.victims.all.files == 1
    assert answer.value.victims.all.files > len(expired_only(crowd))
    assert before == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}


def test_undo_brings_back_the_snapshots_and_no_file_is_gone(tmp_path: Path) -> None:
    crowd = lake(tmp_path)
    before, snapshots = crowd.files(), crowd.writers["t"].document()["snapshots"]
    done = expire(crowd, grace="1d")
    crowd.process().undo(done.status.id)
    assert crowd.writers["t"].document()["snapshots"] == snapshots
    assert before <= crowd.files()
    crowd.check()


@pytest.mark.full
def test_killed_at_every_write_and_resumed(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    crowd, counting = lake(tmp_path / "counted"), CountingFault()
    expire(crowd, crowd.process(counting), meant=True)
    deaths = 0
    for number in range(1, counting.effects + 1, 1 if FULL else 5):
        for when in ("before", "after") if FULL else ("before",):
            crowd = lake(tmp_path / f"{number}-{when}")
            gone = expired_only(crowd) | {f"{crowd.lake}/{STRAY}"}
            with pytest.raises(Died):
                expire(crowd, crowd.process(Dying(number, when=when)), meant=True)
            deaths += 1
            crowd.check()
            crowd.clock.advance(LEASE.length_ms + LEASE.margin_ms + 1_000)
            crowd.process().resume(crowd.name("t"))
            expire(crowd)
            assert not gone & crowd.files()
            crowd.check()
    record_property("count: deaths of an expiry with a search", {"resumed to the same end": deaths})
    assert deaths > 5


@pytest.mark.full
def test_a_commit_between_any_two_requests_keeps_what_it_names(tmp_path: Path) -> None:
    """The file is an orphan when the listing sees it. A commit names it: before that the listing is over, the tables
    are read, the plan is made, the run committed or some of it deleted.
    """
    crowd, counting = lake(tmp_path / "counted"), CountingFault()
    strayed(crowd)
    expire(crowd, crowd.process(counting))
    places = range(1, counting.requests + 1, 1 if FULL else 40)
    spared = 0
    for at in places:
        crowd = lake(tmp_path / str(at))
        item, taken = strayed(crowd), list[int]()
        acting = Acting(at, partial(_take_up, crowd, item, taken))
        told = _expired_beside(crowd, acting)
        if not taken:
            continue
        assert item.path in crowd.files() or item.path in told, acting.before
        if item.path in crowd.files():
            spared += 1
            crowd.check()
    assert spared > len(places) // 2


def _take_up(crowd: Crowd, item: Item, taken: list[int]) -> None:
    """Commits the file unless it is gone by then."""
    if item.path in crowd.files():
        taken.append(crowd.writers["t"].commit("append", [item]))


def _expired_beside(crowd: Crowd, acting: Acting) -> str:
    """Returns what an expiry says of files that it lost to a commit while another process acts: one that names a file
    between the last look and the delete is not seen before, and must be told.
    """
    (answer,) = crowd.process(acting).several([crowd.name("t")]).expire(**asked(crowd, grace="0s"))
    assert answer.problem is None or answer.problem.kind in ("taken-up-again", "table-moved"), answer.problem
    return answer.problem.message if answer.problem is not None and answer.problem.kind == "taken-up-again" else ""


@pytest.mark.parametrize("who", ["t", "neighbour"])
def test_what_a_table_names_since_is_spared(tmp_path: Path, who: str) -> None:
    crowd = lake(tmp_path)
    item, gone = strayed(crowd), expired_only(crowd)
    waiting = expire(crowd, grace="1h")
    assert waiting.status.run.plan["orphans"]["victims"]["files"] == 2
    crowd.writers[who].commit("append", [item])
    crowd.clock.advance(2 * 3_600_000)
    done = crowd.later().purge(waiting.status.id)
    assert done.state is RunState.DONE
    assert item.path in crowd.files()
    assert not gone & crowd.files()
    crowd.check()


def test_an_expired_snapshot_that_came_back_is_spared_although_the_search_had_opened_it(tmp_path: Path) -> None:
    """The search opened the manifests of what expires. A purge that took those for walked would not see that the table
    needs their files again.
    """
    crowd = lake(tmp_path)
    writer, gone = crowd.writers["t"], expired_only(crowd)
    before = writer.document()
    waiting = expire(crowd, grace="1h")
    (first, *_) = before["snapshots"]
    writer.change(lambda now: _brought_back(now, first))
    crowd.clock.advance(2 * 3_600_000)
    needed = set(crowd.ledger.truths[first["snapshot-id"]].data)
    done = crowd.later().purge(waiting.status.id)
    assert done.state is RunState.DONE
    assert needed <= crowd.files()
    assert not (gone - needed) & crowd.files()
    crowd.check()


def _brought_back(now: dict[str, Any], snapshot: dict[str, Any]) -> None:
    now["snapshots"].append(snapshot)
    now["refs"]["again"] = {"snapshot-id": snapshot["snapshot-id"], "type": "tag"}


def test_a_file_that_was_written_again_in_grace_is_spared(tmp_path: Path) -> None:
    crowd = lake(tmp_path)
    waiting = expire(crowd, grace="1h")
    crowd.set_age(crowd.folder / "lake" / STRAY, 0.0)
    crowd.clock.advance(2 * 3_600_000)
    done = crowd.later().purge(waiting.status.id)
    assert done.outcomes["spared"].files == 1
    assert f"{crowd.lake}/{STRAY}" in crowd.files()


def test_where_nothing_expires_the_orphans_have_a_run_of_their_own(tmp_path: Path) -> None:
    crowd = lake(tmp_path)
    expire(crowd)
    stray = crowd.stray("t/data/later.parquet")
    done = expire(crowd)
    assert done.status.run.kind == "orphans"
    assert done.status.state is RunState.DONE
    assert stray not in crowd.files()
    assert expire(crowd).status is None


def test_what_stops_a_search_stops_no_expiry(tmp_path: Path) -> None:
    crowd = lake(tmp_path)
    stranger = crowd.folder / "lake" / "t" / "metadata" / "00009-stranger.metadata.json"
    stranger.write_text("no metadata at all")
    crowd.set_age(stranger, 10)
    gone = expired_only(crowd)
    done = expire(crowd)
    assert isinstance(done.unsearched, UnreadableMetadata | RefusedForSafety)
    assert any("not searched" in note for note in done.plan.notes)
    assert done.status.state is RunState.DONE
    assert not gone & crowd.files()
    assert f"{crowd.lake}/{STRAY}" in crowd.files()


def test_too_many_orphans_stay_and_the_expiry_goes_on(tmp_path: Path) -> None:
    crowd = lake(tmp_path)
    writer = crowd.writers["t"]
    _grow(writer)
    for number in range(40):
        crowd.stray(f"t/data/{number}.parquet", data=b"x" * 5_000)
    done = expire(crowd, blast_radius=0.4)
    assert done.plan.orphans.refused
    assert done.status.state is RunState.DONE
    assert done.status.run.search is None
    assert f"{crowd.lake}/{STRAY}" in crowd.files()


def _grow(writer: Writer) -> None:
    """Commits so many files that what expires is a small part of them."""
    writer.append(30)


@pytest.mark.parametrize("spoiled", [
    {"orphans": []}, {"orphans": {}}, {"orphans": {"scope": {}}}, {"orphans": 5},
    {"parts": {"victims": {}, "walked": {}}},
])  # fmt: skip
def test_a_record_that_is_not_understood_deletes_nothing(tmp_path: Path, spoiled: dict[str, Any]) -> None:
    crowd = lake(tmp_path)
    waiting = expire(crowd, grace="1h")
    record = next((crowd.folder / "lake" / "t" / "_firnline" / "runs").glob("*/plan.json"))
    record.write_text(json.dumps({**json.loads(record.read_text()), **spoiled}))
    before = crowd.files()
    crowd.clock.advance(2 * 3_600_000)
    with pytest.raises((UnreadableMetadata, RefusedForSafety)):
        crowd.later().purge(waiting.status.id)
    assert crowd.files() == before


def cloned(crowd: Crowd) -> set[str]:
    """Returns the data files of a table that no catalog has, whose only snapshot is the current one of `t`."""
    document = crowd.writers["t"].document()
    current = document["current-snapshot-id"]
    place = crowd.folder / "clones" / "t"
    snapshots = [each for each in document["snapshots"] if each["snapshot-id"] == current]
    own = {"table-uuid": str(uuid4()), "location": f"file://{place}", "metadata-log": [], "snapshot-log": []}
    (place / "metadata").mkdir(parents=True)
    (place / "metadata" / "v1.metadata.json").write_text(json.dumps({**document, **own, "snapshots": snapshots}))
    (place / "metadata" / "version-hint.text").write_text("1")
    return set(crowd.ledger.truths[current].data)


@pytest.mark.parametrize("way", ["with an expiry", "by a search", "of the folder"])
def test_what_a_table_under_shared_with_needs_stays(tmp_path: Path, way: str) -> None:
    """No catalog has it, so that only the configuration tells of it. Once the snapshots that it shares have expired,
    nothing else needs its files.
    """
    crowd = Crowd.make(tmp_path)
    writer = crowd.table("t")
    needed = cloned(crowd)
    writer.compact()
    crowd.age(crowd.folder / "lake")
    process = crowd.process(policy=f"shared-with: [{tmp_path}/clones/t]")
    expire(crowd, process, orphans=False)
    assert needed <= crowd.files()
    if way == "with an expiry":
        expire(crowd, process)
    else:
        searched = crowd.name("t") if way == "by a search" else crowd.lake
        process.orphans(searched, grace="0s", blast_radius=1.0, consent=lambda plan: True)
    assert needed <= crowd.files()


def test_a_neighbour_that_breaks_in_grace_holds_up_no_expiry_that_asks_nobody(tmp_path: Path) -> None:
    crowd = lake(tmp_path)
    gone = expired_only(crowd)
    waiting = expire(crowd, crowd.process(policy="sharing: none"), grace="1h")
    for metadata in (crowd.folder / "lake" / "t" / "data" / "neighbour" / "metadata").glob("*.json"):
        metadata.write_text("broken")
    crowd.clock.advance(2 * 3_600_000)
    done = crowd.process(policy="sharing: none").purge(waiting.status.id)
    assert done.state is RunState.DONE
    assert not gone & crowd.files()
    assert f"{crowd.lake}/{STRAY}" in crowd.files()
    assert done.outcomes["spared"].files == 1


def test_a_record_of_another_key_holds_up_no_later_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = lake(tmp_path)
    gone = expired_only(crowd)
    waiting = expire(crowd, grace="1h")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "another home"))
    crowd.clock.advance(2 * 3_600_000)
    done = crowd.later().purge(waiting.status.id)
    assert done.state is RunState.DONE
    assert not gone & crowd.files()
    assert f"{crowd.lake}/{STRAY}" in crowd.files()
    crowd.check()


def test_a_doubt_after_some_of_what_was_listed_is_gone_stops_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether a commit took up what the last batch removed cannot be seen then, and must not go by in silence."""
    crowd = lake(tmp_path)
    crowd.stray("t/data/second.parquet")
    waiting = expire(crowd, grace="1h")
    crowd.clock.advance(2 * 3_600_000)
    monkeypatch.setattr(LocalDeleteMany, "rows", 1)
    looks = LakeGuard.look_again
    monkeypatch.setattr(LakeGuard, "look_again", lambda guard: _broken_later(crowd, looks, guard))
    with pytest.raises(UnreadableMetadata, match="a neighbour"):
        crowd.later().purge(waiting.status.id)


def _broken_later(crowd: Crowd, look: Callable[[LakeGuard], None], guard: LakeGuard) -> None:
    if f"{crowd.lake}/{STRAY}" not in crowd.files():
        raise UnreadableMetadata("a neighbour cannot be read", hint="")
    look(guard)


def test_the_cap_holds_for_both_together(tmp_path: Path) -> None:
    crowd = Crowd.make(tmp_path)
    crowd.table("t").compact()
    crowd.age(crowd.folder / "lake")
    for number in range(40):
        crowd.stray(f"t/data/{number}.parquet", data=b"x" * 600)
    done = expire(crowd, blast_radius=0.85)
    assert "94.5% of the table's files" in done.plan.orphans.refused
    assert done.status.state is RunState.DONE
    assert done.status.run.search is None
    assert crowd.strays <= crowd.files()


def test_a_page_shows_what_goes_also_where_nothing_expires(tmp_path: Path) -> None:
    crowd = lake(tmp_path)
    expire(crowd)
    crowd.stray("t/data/later.parquet", data=b"12345")
    (answer,) = crowd.process().several([crowd.name("t")]).plan(**asked(crowd))
    assert answer.value is not None
    assert answer.value.victims.all == Tally(1, 5)
    assert "5 B" in lake_wide_page([answer]).to_text()
    assert "would then purge: 1 file" in explain(answer.value).to_text()
