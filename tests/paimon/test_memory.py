"""What a Paimon table remembers of its expired snapshots, and how it is read back: by its own commands and as rows."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from firnline.errors import FirnlineError, TableMoved, UnsupportedFormat
from firnline.history.names import PATH
from firnline.model.holds import Hold
from firnline.ops.marks.holds import add_hold
from firnline.sql.asking import RelationRequest, open_relation
from firnline.sql.relations import TimeBounds
from firnline.testing.faults import Acting, CountingFault
from harness.paimon.java_table import JavaTable
from harness.paimon.layout import SNAPSHOT, TAG, PaimonRoot
from harness.paimon.shapes import MAIN
from harness.paimon.worlds import Paimon

from .small import Copy, row

FOREVER = {"keep": {"history": "forever"}}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No configuration of whoever runs the tests."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def rows(copy: Copy, what: str, **options: Any) -> list[dict[str, Any]]:
    """Returns the rows of a table's table, after a journey such as the one to an executor."""
    relation, _ = open_relation(RelationRequest(copy.table, what, **options))
    relation, pieces = pickle.loads(pickle.dumps((relation, list(relation.pieces(TimeBounds())))))
    batches = [each for piece in pieces for each in relation.read(piece, relation.schema.names)]
    return [each for batch in batches for each in batch.to_pylist()]


def expired(copy: Copy) -> dict[int, bool]:
    """Returns whether each snapshot of the main branch expired."""
    found = rows(copy, "all_snapshots")
    return {each["snapshot_id"]: each["expired"] for each in found if "branch" not in dict(each["summary"])}


def notes(copy: Copy) -> dict[str, str]:
    found: dict[str, str] = json.loads((copy.folder / "t/_firnline/properties.json").read_text())
    return found


def documents(copy: Copy) -> dict[int, dict[str, Any]]:
    paths = (copy.folder / "t/snapshot").glob("snapshot-*")
    return {int(path.name.partition("-")[2]): json.loads(path.read_text()) for path in paths}


def test_what_expired_is_remembered_whole(copy: Copy) -> None:
    before = documents(copy)
    assert expired(copy) == dict.fromkeys(before, False)
    ended = copy.expire(**FOREVER)
    gone = {int(each) for each in ended.expired}
    assert gone == {1, 3, 5}
    listed = json.loads(Path(notes(copy)[PATH].removeprefix("file://")).read_text())
    assert {each["snapshot-id"]: each["paimon"] for each in listed} == {number: before[number] for number in gone}
    assert expired(copy) == {number: number in gone for number in before}
    assert [each["snapshot-id"] for each in copy.process().expired_snapshots(copy.table)] == sorted(gone)


def test_a_quiet_table_forgets_what_is_older_than_an_instant(copy: Copy) -> None:
    """Nothing expires any more, and the commit changes no file of Paimon's."""
    before = documents(copy)
    copy.expire(**FOREVER)
    picture = copy.picture()
    quiet = copy.expire(retain_last=100, keep={"history": before[3]["timeMillis"]})
    assert quiet.expired == ()
    assert quiet.state == "done"
    assert [each["snapshot-id"] for each in copy.process().expired_snapshots(copy.table)] == [5]
    assert copy.picture() == picture
    assert copy.process().check(copy.table).sound


def test_all_snapshots_say_of_a_snapshot_what_it_said(copy: Copy) -> None:
    before = documents(copy)
    live = {each["snapshot_id"]: each for each in rows(copy, "snapshots") if "branch" not in dict(each["summary"])}
    copy.expire(**FOREVER)
    for each in rows(copy, "all_snapshots"):
        summary = dict(each["summary"])
        if "branch" in summary:
            continue
        said = before[each["snapshot_id"]]
        assert each["operation"] == said["commitKind"].lower()
        assert each["committed_at"].timestamp() * 1000 == pytest.approx(said["timeMillis"])
        assert each["manifest_list"].endswith("/manifest/" + said["deltaManifestList"])
        assert summary["total-records"] == str(said["totalRecordCount"])
        assert summary["commitUser"] == said["commitUser"]
        assert {name: value for name, value in each.items() if name not in ("expired", "tier")} == live[
            each["snapshot_id"]
        ]


def test_undo_takes_its_ids_out_again(copy: Copy) -> None:
    before, days = rows(copy, "all_snapshots"), copy.process().history(copy.table)[0].to_json()["days"]
    ended = copy.expire(grace="1h", **FOREVER)
    assert any(expired(copy).values())
    copy.process().undo(str(ended.run.id))
    assert rows(copy, "all_snapshots") == before
    assert list(copy.process().expired_snapshots(copy.table)) == []
    (account,) = {each["run_end"] for each in rows(copy, "ledger")}
    assert account == "undone"
    timeline, trouble = copy.process().history(copy.table)
    assert trouble is None
    assert timeline.to_json()["days"] == days


def test_the_history_grows_run_by_run_and_drops_what_is_too_old(both: Paimon, copy: Copy) -> None:
    copy.expire(**FOREVER)
    table = JavaTable(both.java, copy.folder / "t")
    table.write(MAIN, [row(7, "seven")])
    table.write(MAIN, [row(8, "eight")])
    copy.expire(retain_last=1, **FOREVER)
    found = expired(copy)
    assert sorted(number for number, gone in found.items() if gone) == [1, 3, 5, 6, 7, 8]
    assert len(list((copy.folder / "t/_firnline/history").rglob("expired-snapshots-*.json"))) == 1
    table.write(MAIN, [row(9, "nine")])
    copy.clock.advance(20_000)
    copy.expire(retain_last=1, keep={"history": "1s"})
    assert not any(expired(copy).values())


def test_a_branch_is_remembered_too(both: Paimon, copy: Copy) -> None:
    table = JavaTable(both.java, copy.folder / "t")
    for number in (10, 11, 12):
        table.write("side", [row(number, "more")])
    ended = copy.expire(retain_last=1, **FOREVER)
    gone = {each for each in ended.expired if each.startswith("side:")}
    assert gone == {"side:3", "side:4", "side:5"}
    of_side = [each for each in rows(copy, "all_snapshots") if dict(each["summary"]).get("branch") == "side"]
    assert {each["snapshot_id"]: each["expired"] for each in of_side} == {2: False, 3: True, 4: True, 5: True, 6: False}
    assert {each["snapshot-id"] for each in copy.process().expired_snapshots(copy.table)} >= gone
    (run,) = rows(copy, "runs")
    assert sorted(run["expired"]) == sorted(int(each.rpartition(":")[2]) for each in ended.expired)
    assert {each["name"]: each["snapshot_id"] for each in rows(copy, "refs")}["side"] == 6


def test_the_ledger_says_why_each_snapshot_went(copy: Copy) -> None:
    ended = copy.expire(**FOREVER)
    account = {each["snapshot_id"]: each for each in rows(copy, "ledger")}
    assert set(account) == {1, 3, 5}
    for each in account.values():
        assert each["lost_reasons"], each
        assert each["run"] == str(ended.run.id)
        assert each["run_end"] == "purged"
        assert dict(each["run_outcomes"])["deleted"]["files"] == ended.outcomes["deleted"].files > 0
    timeline, trouble = copy.process().history(copy.table)
    assert trouble is None
    days = timeline.to_json()["days"]
    assert sum(day["commits"] for day in days) == len(rows(copy, "all_snapshots"))
    assert sum(day["expired"] for day in days) == 3
    assert sum(day["purged_files"] for day in days) == ended.outcomes["deleted"].files


def test_without_the_setting_nothing_is_remembered(copy: Copy) -> None:
    copy.expire()
    assert PATH not in notes(copy)
    assert not any(expired(copy).values())
    assert rows(copy, "ledger") == []


def test_files_are_those_that_a_plain_reader_finds(copy: Copy) -> None:
    reader = copy.reader()
    for named, root in (("7", _seventh()), ("two", PaimonRoot(MAIN, TAG, "two")), ("side", _side(copy))):
        found = rows(copy, "files", snapshot=named)
        assert {each["file_path"] for each in found} == reader.needs(root).data
        assert all(each["file_size_in_bytes"] == Path(each["file_path"]).stat().st_size for each in found)
        assert {each["partition"]["p"] for each in found} <= {"a/b=c", "x"}
        assert {each["file_format"] for each in found} == {"PARQUET"}


def _side(copy: Copy) -> PaimonRoot:
    return max((each for each in copy.reader().reachable() if each.branch == "side" and each.kind == SNAPSHOT), key=str)


def test_entries_tell_what_a_snapshot_added_and_took_away(copy: Copy) -> None:
    found = rows(copy, "entries", snapshot="7")  # a compaction of everything
    here = {each["data_file"]["file_path"]: each["status"] for each in found if each["snapshot_id"] == 7}
    assert set(here.values()) == {1, 2}
    assert {each["status"] for each in found if each["snapshot_id"] is None} <= {0, 2}
    gone = {path for path, status in here.items() if status == 2}
    assert gone == copy.reader().needs(PaimonRoot(MAIN, SNAPSHOT, "6")).data - copy.reader().needs(_seventh()).data
    manifests = rows(copy, "manifests", snapshot="7")
    assert sum(each["added_data_files_count"] for each in manifests) == sum(each["status"] < 2 for each in found)
    assert sum(each["deleted_data_files_count"] for each in manifests) == sum(each["status"] == 2 for each in found)
    assert all(Path(each["path"]).stat().st_size == each["length"] for each in manifests)


def _seventh() -> PaimonRoot:
    return PaimonRoot(MAIN, SNAPSHOT, "7")


def test_the_log_is_the_main_branch(copy: Copy) -> None:
    log = rows(copy, "history")
    assert [each["snapshot_id"] for each in log] == list(range(1, 8))
    assert all(each["is_current_ancestor"] for each in log)
    assert [each["parent_id"] for each in log] == [None, *range(1, 7)]


def test_one_version_is_read_however_many_snapshots_come_on_top(both: Paimon, copy: Copy) -> None:
    _, version = open_relation(RelationRequest(copy.table, "all_snapshots"))
    before = rows(copy, "all_snapshots", version=version), rows(copy, "files", version=version)
    table = JavaTable(both.java, copy.folder / "t")
    table.write(MAIN, [row(20, "twenty")])
    table.write("side", [row(21, "more")])
    assert (rows(copy, "all_snapshots", version=version), rows(copy, "files", version=version)) == before
    copy.expire()
    with pytest.raises(TableMoved, match="changed while"):
        rows(copy, "all_snapshots", version=version)


def test_rows_of_a_table_are_left_to_its_own_engine(copy: Copy) -> None:
    with pytest.raises(UnsupportedFormat, match="rows of a paimon table"):
        rows(copy, "rows")


def test_a_commit_that_is_given_up_leaves_the_notes_as_they_were(both: Paimon, made: Path) -> None:
    """A rollback below what the commit leaves: it is taken back, and a hold that somebody set is still noted."""
    given_up = 0
    for copy, step in _cut_by_a_rollback(both, made):
        given_up += len(list((copy.folder / "t/_firnline/commits").glob("*.given-up")))
        assert "firnline.hold.audit" in notes(copy), step
        assert copy.process().check(copy.table).sound
        assert copy.process().history(copy.table)[1] is None, step
    assert given_up


def _cut_by_a_rollback(both: Paimon, made: Path) -> Iterator[tuple[Copy, int]]:
    counted, counting = Copy.of(made, "notes"), CountingFault()
    _hold(counted)
    counted.expire(counting, sole_writer=False, **FOREVER)
    counted.end()
    begun = max(at for at, (_, key) in enumerate(counting.trace, 1) if key.endswith(".begun"))  # when it is written
    for at in range(begun + 1, begun + 10, 3):
        copy = Copy.of(made, f"notes-{at}")
        _hold(copy)
        table = JavaTable(both.java, copy.folder / "t")
        with suppress(FirnlineError):  # Paimon cannot roll back to what is gone already
            copy.expire(Acting(at, lambda table=table: _roll_back(table)), sole_writer=False, **FOREVER)  # type: ignore[misc]
        yield copy, at
        copy.end()


def _roll_back(table: JavaTable) -> None:
    with suppress(Py4JJavaError):
        table.rollback(MAIN, 5)


def _hold(copy: Copy) -> None:
    add_hold(copy.process().places.table_context(copy.table), Hold("audit", "somebody", "a test", "2"))
