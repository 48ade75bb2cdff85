"""The list of unfinished runs: it spares a look at every table, and says where to look and nothing else."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import yaml
from pyiceberg.catalog.sql import SqlCatalog

from firnline.app.places import now_ms
from firnline.cli.main import run
from firnline.errors import FirnlineError, StoreError, UnreadableMetadata
from firnline.journal.events import UNSEALED
from firnline.journal.layout import RunId
from firnline.journal.runs import load_run
from firnline.journal.unfinished import entry_key
from firnline.lake import Lake
from firnline.model.times import DAY_MS
from firnline.ops.looking.permissions import places_of
from firnline.stores.objects import ObjectStores
from firnline.testing.dated import Clock, date, dated
from tests.neighbours.lakes import RealLake
from tests.neighbours.test_expire_many import Cut, Dying

NAMES = "abc"
ALL = [f"lake.db.{name}" for name in NAMES]


def asked(**more: Any) -> dict[str, Any]:
    return {"older_than": now_ms(), "retain_last": 1, "blast_radius": 1.0, "grace": "1d", **more}


def grow(lake: RealLake, *names: str) -> None:
    for name in names:
        lake.create(name)
        lake.append(name, 1)
        lake.overwrite(name, 2)


@pytest.fixture
def three(lake: RealLake) -> RealLake:
    """Tables of three snapshots, whose runs are recorded in a folder of their own."""
    grow(lake, *NAMES)
    lake.policy = f"records: {lake.folder}/records\n"
    return lake


def entries(lake: RealLake) -> list[Path]:
    return sorted((lake.folder / "records" / "_firnline" / "unfinished").glob("*"))


def entry_of(lake: RealLake, run_id: str) -> Path:
    (found,) = [each for each in entries(lake) if json.loads(each.read_text())["run"] == run_id.rpartition("@")[2]]
    return found


def age(*files: Path, days: int = 2) -> None:
    for file in files:
        date(file, now_ms() - days * DAY_MS)


def committed(lake: RealLake, name: str, **more: Any) -> str:
    """Returns a run of the table that waits for the end of grace."""
    status = lake.firnline().expire(f"lake.db.{name}", **asked(**more))
    assert status.state == "committed"
    return str(status.id)


def later(lake: RealLake) -> Lake:
    """Returns firnline as it is when grace is over."""
    return dated(lake.firnline(), Clock(2 * DAY_MS))


def shown(lake: Lake, **how: Any) -> dict[str, str]:
    """Returns the runs that are shown without a table being named, each with its state."""
    answers = list(lake.several().runs(**how))
    assert [each.problem for each in answers if each.problem] == []
    return {status.id: str(status.state) for each in answers for status in each.value or ()}


def states(answers: Any) -> dict[str, str]:
    assert [each.problem for each in answers if each.problem] == []
    return {status.id: str(status.state) for each in answers for status in each.value or ()}


# ---- what it costs


@contextmanager
def requests() -> Iterator[Counter[str]]:
    """Counts what is asked of stores and of the catalog's database."""
    made: Counter[str] = Counter()

    def counted(verb: str) -> Callable[..., Any]:
        act = getattr(ObjectStores, verb)

        def asked_for(*said: Any) -> Any:
            made[verb] += 1
            return act(*said)

        return asked_for

    def execute(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        made["sql"] += 1

    with pytest.MonkeyPatch.context() as patched:
        for verb in ("get", "head", "list", "names", "links", "put", "put_if_absent"):
            patched.setattr(ObjectStores, verb, counted(verb))
        sa.event.listen(sa.Engine, "before_cursor_execute", execute)
        try:
            yield made
        finally:
            sa.event.remove(sa.Engine, "before_cursor_execute", execute)


def crowd(lake: RealLake, tables: int) -> None:
    """Registers so many tables more. None of them has any metadata: whoever looks at one fails."""
    with sqlite3.connect(lake.folder / "catalog.db") as database:
        columns = "catalog_name, table_namespace, table_name, metadata_location"
        rows = [("lake", "crowd", f"t{number}", f"file:///nowhere/t{number}.json") for number in range(tables)]
        database.executemany(f"INSERT INTO iceberg_tables ({columns}) VALUES (?, ?, ?, ?)", rows)
    database.close()


VERBS: dict[str, Callable[[Lake], Any]] = {
    "runs": shown,
    "resume": lambda lake: states(lake.several().resume()),
    "purge": lambda lake: states(lake.several().purge()),
    "tables": lambda lake: lake.places.catalogs.readable(),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("verb", VERBS)
def test_five_thousand_tables_cost_no_more_requests_than_three(three: RealLake, verb: str) -> None:
    waiting = {committed(three, "a"), committed(three, "b")}
    VERBS[verb](three.firnline())  # what is made once: the folder of the lease, tables of the database's driver
    with requests() as few:
        found = VERBS[verb](three.firnline())
    crowd(three, 5_000)
    with requests() as many:
        again = VERBS[verb](three.firnline())
    assert many == few
    assert sum(few.values()) > 0
    if verb != "tables":
        assert set(found) == set(again) == waiting
    else:
        assert len(again[0]) == len(found[0]) + 5_000


# ---- entries come before runs, and go after them


def unfinished_records(lake: RealLake) -> set[tuple[str, str]]:
    """Returns uuid and stamp of every run whose record says that it has not ended, by the records alone."""
    store = lake.firnline().places.stores.open({})
    found = (
        load_run(store, str(plan.parents[2]), RunId("x", plan.parent.name), UNSEALED)
        for plan in (lake.folder / "records").glob("*/runs/*/plan.json")
    )
    return {(each.uuid, each.id.stamp) for each in found if not each.is_finished}


def entered(lake: RealLake) -> set[tuple[str, str]]:
    return {(said["uuid"], said["run"]) for said in (json.loads(each.read_text()) for each in entries(lake))}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("calls", range(0, 66, 5))
def test_a_run_that_has_not_ended_has_an_entry_at_whatever_write_its_process_died(
    three: RealLake, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(ObjectStores, "put_if_absent", Dying(calls)(ObjectStores.put_if_absent))
        with suppress(Cut):
            three.firnline().several(at_once=1).expire(**asked(grace="0s"))
    assert unfinished_records(three) <= entered(three)
    carried = states(three.firnline().several().resume(break_lease=True))
    assert states(three.firnline().several().resume(everywhere=True)).keys() <= carried.keys()
    assert unfinished_records(three) <= entered(three)
    assert all(three.read_all(name)[-1] == [2] for name in NAMES)


def test_a_run_that_ends_leaves_the_list(three: RealLake) -> None:
    purged, undone = committed(three, "a"), committed(three, "b")
    saved = str(three.firnline().plan("lake.db.c", save=True, **asked()).plan.run)
    assert shown(three.firnline()) == {purged: "committed", undone: "committed", saved: "planned"}
    three.firnline().undo(undone)
    three.firnline().undo(saved)
    assert entries(three) == [entry_of(three, purged)]
    assert shown(three.firnline()) == {purged: "committed"}
    assert states(later(three).several().purge()) == {purged: "done"}
    assert entries(three) == []
    assert shown(three.firnline()) == {}
    assert shown(three.firnline(), everywhere=True) == {purged: "done", undone: "undone", saved: "cancelled"}


def test_a_search_is_on_the_list_too(three: RealLake) -> None:
    file = Path(three.table("a").location().removeprefix("file://")) / "data" / "00000-0-left.parquet"
    file.write_bytes(b"left behind")
    date(file, now_ms() - 40 * DAY_MS)
    (first, *_) = three.firnline().several(["lake.db.a"]).orphans(grace="0s", blast_radius=1.0)
    assert first.value is not None
    assert first.value.status is not None
    assert shown(three.firnline()) == {first.value.status.id: "planned"}
    three.firnline().undo(first.value.status.id)
    assert entries(three) == []


def test_an_entry_of_a_run_that_ended_is_harmless_and_goes_with_the_next_act(three: RealLake) -> None:
    """The process died between the end of the run and the removal of its entry."""
    ended = committed(three, "a")
    kept = entry_of(three, ended).read_bytes()
    place = entry_of(three, ended)
    three.firnline().undo(ended)
    place.write_bytes(kept)
    assert shown(three.firnline()) == {}
    assert entries(three) == [place]
    assert states(three.firnline().several().resume()) == {}
    assert entries(three) == []


def dead_before_its_record(three: RealLake, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns the entry of a run of which nothing else was written."""

    def written(store: ObjectStores, key: str, data: bytes) -> None:
        if key.endswith("000001.json"):
            raise Cut
        put(store, key, data)

    put = ObjectStores.put_if_absent
    with monkeypatch.context() as patched:
        patched.setattr(ObjectStores, "put_if_absent", written)
        with pytest.raises(Cut):
            three.firnline().plan("lake.db.a", save=True, **asked())
    (left,) = entries(three)
    return left


def test_an_entry_without_a_record_is_harmless_and_goes_when_it_is_old(
    three: RealLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = dead_before_its_record(three, monkeypatch)
    assert shown(three.firnline()) == {}
    assert states(three.firnline().several().resume()) == {}
    assert left.exists()  # its record may be about to be written
    age(left)
    assert shown(three.firnline()) == {}
    assert left.exists()
    assert states(three.firnline().several().purge()) == {}
    assert not left.exists()


# ---- what is wrong with a list


def garbage(lake: RealLake) -> dict[str, bytes]:
    whole = entries(lake)[0].read_bytes()
    strange = json.dumps({**json.loads(whole), "uuid": 5}).encode()
    return {
        "run-" + "0" * 32 + ".json": b"\xff\xfe nothing",
        "run-" + "1" * 32 + ".json": b"[]",
        "run-" + "2" * 32 + ".json": strange,
        "run-" + "3" * 32 + ".json": whole,
        ".DS_Store": b"",
    }


def test_garbage_among_the_entries_is_told_and_hides_no_run(
    three: RealLake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    waiting = committed(three, "a")
    home = entries(three)[0].parent
    placed = {home / name: data for name, data in garbage(three).items()}
    for file, data in placed.items():
        file.write_bytes(data)
    age(*placed)
    for act in (three.firnline().several().runs, three.firnline().several().resume, later(three).several().purge):
        answers = list(act())
        problems = [each for each in answers if each.problem is not None]
        assert sorted(Path(each.table).name for each in problems) == sorted(each.name for each in placed)
        assert all(isinstance(each.problem, UnreadableMetadata) for each in problems)
        assert [status.id for each in answers for status in each.value or ()] == [waiting]
    assert {file: file.read_bytes() for file in placed} == placed
    monkeypatch.chdir(three.folder)
    assert run(["runs"]) == UnreadableMetadata.exit_code
    assert "--all" in capsys.readouterr().err
    assert run(["runs", "--all"]) == 0


def test_a_list_that_cannot_be_read_is_told_with_the_way_around_it(
    three: RealLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = committed(three, "a")
    listed = ObjectStores.list

    def silent(store: ObjectStores, prefix: str) -> Any:
        if "unfinished" in prefix:
            raise StoreError("no answer")
        return listed(store, prefix)

    monkeypatch.setattr(ObjectStores, "list", silent)
    (answer,) = three.firnline().several().runs()
    assert isinstance(answer.problem, StoreError)
    assert "`everywhere=True`" in answer.problem.hint
    assert shown(three.firnline(), everywhere=True) == {waiting: "committed"}


def test_a_run_whose_entry_was_removed_by_hand_is_found_by_all_and_entered_again(three: RealLake) -> None:
    waiting = committed(three, "a")
    shutil.rmtree(three.folder / "records" / "_firnline")
    assert shown(three.firnline()) == {}
    assert states(later(three).several().purge()) == {}
    assert shown(three.firnline(), everywhere=True) == {waiting: "committed"}
    assert states(three.firnline().several().resume(everywhere=True)) == {waiting: "committed"}
    assert shown(three.firnline()) == {waiting: "committed"}


def test_a_list_that_cannot_be_written_saves_no_run(three: RealLake) -> None:
    (three.folder / "records").mkdir()
    (three.folder / "records" / "_firnline").write_text("in the way")
    with pytest.raises(FirnlineError):
        three.firnline().expire("lake.db.a", **asked())
    assert not list(three.folder.rglob("plan.json"))
    assert len(three.table("a").snapshots()) == 3


# ---- tables that are not where they were


def test_a_run_of_a_renamed_table_is_found_under_the_new_name(three: RealLake) -> None:
    waiting = committed(three, "a")
    three.catalog.rename_table("db.a", "db.renamed")
    stamp = waiting.rpartition("@")[2]
    assert shown(three.firnline()) == {f"lake.db.renamed@{stamp}": "committed"}
    assert states(later(three).several().purge()) == {f"lake.db.renamed@{stamp}": "done"}
    assert entries(three) == []
    assert three.read("renamed") == [2]


def test_a_run_of_a_renamed_table_is_found_although_another_has_its_name_and_it_has_two(three: RealLake) -> None:
    first = committed(three, "a").rpartition("@")[2]
    three.catalog.rename_table("db.a", "db.renamed")
    three.catalog.create_table("db.a", three.table("b").schema(), location=f"file://{three.folder}/warehouse/new")
    three.append("a", 1)
    assert shown(three.firnline()) == {f"lake.db.renamed@{first}": "committed"}
    three.append("renamed", 3)
    second = committed(three, "renamed").rpartition("@")[2]
    wanted = {f"lake.db.renamed@{first}", f"lake.db.renamed@{second}"}
    assert shown(three.firnline()).keys() == wanted
    assert states(later(three).several().purge()) == dict.fromkeys(wanted, "done")
    assert entries(three) == []
    assert three.read_all("a") == [[1]]


def test_an_entry_of_a_dropped_table_is_harmless_and_goes_when_it_is_old(three: RealLake) -> None:
    gone, waiting = entry_of(three, committed(three, "a")), committed(three, "b")
    three.catalog.drop_table("db.a")
    for _ in range(2):
        assert shown(three.firnline()) == {waiting: "committed"}
        assert states(three.firnline().several().resume()) == {waiting: "committed"}
    assert gone.exists()
    age(gone, days=91)
    assert shown(three.firnline()) == {waiting: "committed"}
    assert gone.exists()
    assert states(three.firnline().several().resume()) == {waiting: "committed"}
    assert not gone.exists()


def test_a_table_that_is_away_for_some_days_is_found_again(three: RealLake) -> None:
    """It is dropped and registered anew, as a catalog is moved: nothing else than the entry leads to its run."""
    waiting = committed(three, "a")
    entry, metadata = entry_of(three, waiting), three.table("a").metadata_location
    three.catalog.drop_table("db.a")
    age(entry)
    assert states(three.firnline().several().resume()) == {}
    three.catalog.register_table("db.a", metadata)
    assert states(later(three).several().resume()) == {waiting: "done"}
    assert entries(three) == []


def test_records_that_a_table_pinned_elsewhere_stay_there_and_its_runs_are_on_the_list(three: RealLake) -> None:
    configured, three.policy = three.policy, ""
    three.firnline().undo(committed(three, "a"))
    three.policy = configured
    waiting = committed(three, "a")
    assert not list((three.folder / "records").glob("*/runs"))
    assert shown(three.firnline()) == {waiting: "committed"}
    assert states(later(three).several().resume()) == {waiting: "done"}
    assert entries(three) == []


def test_a_table_that_cannot_be_read_is_told_and_hides_no_other(three: RealLake) -> None:
    committed(three, "a")
    waiting = committed(three, "b")
    shutil.rmtree(Path(three.table("a").metadata_location.removeprefix("file://")).parent)
    answers = {each.table: each for each in three.firnline().several().resume()}
    assert answers["lake.db.a"].problem is not None
    assert [each.id for each in answers["lake.db.b"].value or ()] == [waiting]
    assert len(entries(three)) == 2


# ---- several catalogs


def second_catalog(lake: RealLake, name: str, home: str) -> RealLake:
    """Returns another lake with the same records root; its catalog has that name, and a database of its own."""
    folder = lake.folder / home
    folder.mkdir()
    settings = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/warehouse"}
    catalog = SqlCatalog(name, **settings)
    catalog.create_namespace("db")
    return RealLake(folder, catalog, lake.policy)


def configure(home: RealLake, **catalogs: RealLake) -> None:
    said = {name: {**each.catalog.properties, "s3.region": name} for name, each in catalogs.items()}
    (home.folder / ".pyiceberg.yaml").write_text(yaml.safe_dump({"catalog": said}))


def test_two_catalogs_may_share_a_records_root(three: RealLake) -> None:
    other = second_catalog(three, "other", "second")
    grow(other, "a")
    configure(three, lake=three, other=other)
    first = committed(three, "a")
    second = three.firnline().expire("other.db.a", **asked()).id
    assert shown(three.firnline()) == {first: "committed", second: "committed"}
    odd = entries(three)[0].with_name("odd")
    odd.write_text("odd")
    assert len([each for each in three.firnline().several().runs() if each.problem]) == 1
    odd.unlink()
    configure(three, other=other)
    assert states(later(three).several().purge()) == {second: "done"}
    age(*entries(three))
    assert states(later(three).several().purge()) == {}
    configure(three, lake=three)
    assert shown(three.firnline()) == {first: "committed"}
    other.catalog.close()


def test_another_catalog_of_the_same_name_does_not_judge_the_entries_of_this_one(three: RealLake) -> None:
    """Two machines call their catalogs alike and share a records root: the tables of one are not in the other."""
    waiting = committed(three, "a")
    other = second_catalog(three, "lake", "second")
    grow(other, "z")
    configure(three, lake=other)
    age(*entries(three))
    assert shown(three.firnline()) == {}
    assert states(three.firnline().several().resume()) == {}
    configure(three, lake=three)
    assert shown(three.firnline()) == {waiting: "committed"}
    other.catalog.close()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("level", ["catalog", "namespace", "table"])
def test_tables_without_a_records_root_are_looked_at_one_by_one(three: RealLake, level: str) -> None:
    other = second_catalog(three, "other", "second")
    grow(other, "z")
    configure(three, lake=three, other=other)
    root = {"records": f"{three.folder}/records"}
    inside: dict[str, Any] = {
        "catalog": root,
        "namespace": {"namespaces": {"db": root}},
        "table": {"namespaces": {"db": {"tables": {"a": root}}}},
    }
    three.policy = yaml.safe_dump({"catalogs": {"lake": inside[level]}})
    runs = {committed(three, "a"), committed(three, "b"), str(three.firnline().expire("other.db.z", **asked()).id)}
    assert shown(three.firnline()).keys() == runs
    assert set(states(later(three).several().purge()).values()) == {"done"}
    assert entries(three) == []
    other.catalog.close()


def test_without_a_records_root_every_run_of_every_table_is_shown(three: RealLake) -> None:
    three.policy = ""
    waiting, ended = committed(three, "a"), committed(three, "b")
    three.firnline().undo(ended)
    assert shown(three.firnline()) == {waiting: "committed", ended: "undone"}


def test_a_table_that_no_catalog_has_is_on_no_list(three: RealLake) -> None:
    run_id = three.firnline().plan(three.table("a").location(), save=True, **asked()).plan.run
    assert run_id
    assert entries(three) == []


# ---- beside other things


def test_entries_are_no_orphans_of_a_folder_that_holds_them(three: RealLake) -> None:
    three.policy = f"records: {three.folder}/warehouse/db/a/data\n"
    waiting = committed(three, "b")
    listed = list((three.folder / "warehouse/db/a/data/_firnline/unfinished").glob("*"))
    assert len(listed) == 1
    age(*listed)
    plan, _ = three.firnline().orphans("lake.db.a", dry_run=True, older_than=now_ms() - DAY_MS)
    assert plan.victims.all.files == 0
    classes = {str(each): tally.files for each, tally in plan.classes.items() if tally.files}
    assert "unknown-kind" not in classes
    assert classes["own-records"] >= 1
    assert shown(three.firnline()) == {waiting: "committed"}


def stamp_of(run: str) -> str:
    return run.rpartition("@")[2]


def test_the_commands_take_all_and_say_what_is_not_shown(
    three: RealLake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    waiting, ended = committed(three, "a"), committed(three, "b")
    three.firnline().undo(ended)
    monkeypatch.chdir(three.folder)
    assert run(["runs"]) == 0
    told = capsys.readouterr()
    assert stamp_of(waiting) in told.out
    assert stamp_of(ended) not in told.out
    assert "runs --all" in told.out + told.err
    assert run(["runs", "--all", "--json"]) == 0
    assert {each["run"] for each in json.loads(capsys.readouterr().out)["runs"]} == {waiting, ended}
    assert run(["runs", "lake.db.b"]) == 0
    assert stamp_of(ended) in capsys.readouterr().out
    for verb in ("runs", "resume", "purge"):
        assert run([verb, "lake.db.a", "--all"]) == 2
        assert run([verb, "--all"]) == 0


def test_what_a_role_needs_has_the_list_in_it(three: RealLake) -> None:
    work = three.firnline().places.table_context("lake.db.a")
    folders = places_of(work, work.source.load()).unfinished
    assert folders == (f"{three.folder}/records/_firnline/unfinished",)


def test_no_entry_leads_anywhere_by_itself(three: RealLake) -> None:
    """Who may write into the list can have a table looked at, and nothing more."""
    committed(three, "a")
    said = json.loads(entries(three)[0].read_text())
    forged = {**said, "table": {"catalog": "lake", "namespace": ["db"], "name": "b"}, "run": "20200101T000000Z-000000"}
    forged["uuid"] = str(three.table("b").metadata.table_uuid)
    key = entry_key(f"{three.folder}/records", forged["uuid"], forged["run"])
    Path(str(key)).write_text(json.dumps(forged))
    before = three.table("b").metadata_location
    assert len(shown(three.firnline())) == 1
    assert len(states(three.firnline().several().resume())) == 1
    assert three.table("b").metadata_location == before
    assert not (three.folder / "records" / forged["uuid"]).exists()


@pytest.mark.parametrize("name", ["\ud800", "a\0b", ""], ids=["half a character", "a zero", "nothing"])
def test_an_entry_with_a_name_that_no_catalog_takes_hides_no_run(three: RealLake, name: str) -> None:
    waiting = committed(three, "a")
    said = json.loads(entries(three)[0].read_text())
    forged = {**said, "table": {**said["table"], "name": name}, "run": "20200101T000000Z-000000"}
    key = entry_key(f"{three.folder}/records", forged["uuid"], forged["run"])
    Path(str(key)).write_text(json.dumps(forged))
    for act in (three.firnline().several().runs, three.firnline().several().resume, later(three).several().purge):
        answers = list(act())
        assert {status.id for each in answers for status in each.value or ()} == {waiting}
        assert all(isinstance(each.problem, UnreadableMetadata) for each in answers if each.problem)
