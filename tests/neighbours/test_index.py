"""The index of outward references: what it costs, what makes it read again, and what it does not believe."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from firnline.app.places import now_ms
from firnline.catalogs.config import CatalogSettings
from firnline.errors import RefusedForSafety
from firnline.lake import open_lake
from firnline.model.files import File, FileKind
from firnline.model.holds import Hold
from firnline.model.times import DAY_MS
from firnline.ops.marks.holds import add_hold
from firnline.ops.neighbours.cards import Card
from firnline.ops.neighbours.folders import FolderMap, Folders
from firnline.ops.neighbours.index import Index, Indexed
from firnline.ops.neighbours.outward import Bridge, gathered
from firnline.stores.keys import Key
from firnline.stores.local import LocalFiles
from firnline.testing.dated import Clock, dated
from tests.neighbours.lakes import RealLake


class Reads:
    """Counts what is read of the lake, by the table's folder and what kind of object it is."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.keys: list[str] = []
        get = LocalFiles.get

        def counted(store: LocalFiles, key: Key) -> bytes:
            self.keys.append(str(key))
            return get(store, key)

        monkeypatch.setattr(LocalFiles, "get", counted)

    def of(self, table: str) -> Counter[str]:
        kinds = {"snap-": "list", ".metadata.json": "metadata", ".avro": "manifest"}
        mine = [key.rpartition("/")[2] for key in self.keys if f"/db/{table}/metadata/" in key]
        return Counter(next(kind for part, kind in kinds.items() if part in name) for name in mine)


def plan(lake: RealLake, name: str = "a") -> Any:
    return lake.firnline().plan(f"lake.db.{name}", older_than=now_ms(), retain_last=1).plan


def history(lake: RealLake, *names: str) -> None:
    for name in names:
        lake.create(name)
        lake.append(name, 1)
        lake.overwrite(name, 2)


def test_a_table_is_walked_once_and_then_only_by_what_is_new(lake: RealLake, monkeypatch: pytest.MonkeyPatch) -> None:
    history(lake, "a", "b")
    cold = Reads(monkeypatch)
    assert plan(lake).asked == 1
    assert cold.of("b")["list"] == len(lake.table("b").snapshots())
    warm = Reads(monkeypatch)
    plan(lake)
    assert warm.of("b") == Counter()
    lake.append("b", 3)
    changed = Reads(monkeypatch)
    plan(lake)
    assert changed.of("b")["list"] == 1
    assert changed.of("b")["manifest"] == 1


def test_planning_every_table_in_turn_walks_each_once(lake: RealLake, monkeypatch: pytest.MonkeyPatch) -> None:
    history(lake, "a", "b", "c")
    monkeypatch.setenv("FIRNLINE_CACHE", "off")
    process = lake.firnline()
    for name in "abc":
        process.plan(f"lake.db.{name}", older_than=now_ms(), retain_last=1)
    again = Reads(monkeypatch)
    for name in "abc":
        process.plan(f"lake.db.{name}", older_than=now_ms(), retain_last=1)
    own = {name: len(lake.table(name).snapshots()) for name in "abc"}
    assert {name: again.of(name)["list"] for name in "abc"} == own, "each for its own plan, and for no other"


def test_what_others_were_asked_for_is_not_opened_again_to_judge(
    lake: RealLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    history(lake, "a", "b", "c")
    first = Reads(monkeypatch)
    answers = lake.firnline().several(["lake.db.*"]).plan(older_than=now_ms(), retain_last=1)
    assert [len(each.value.expire) for each in answers if each.value is not None] == [2, 2, 2]
    units = Counter(key for key in first.keys if ".avro" in key)
    lists = sum(len(lake.table(name).snapshots()) for name in "abc")
    assert sum("/snap-" in key for key in units) == lists
    assert {key: times for key, times in units.items() if times > 1} == {}


def test_without_a_cache_every_process_walks_and_the_answer_is_the_same(
    lake: RealLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    history(lake, "a")
    lake.create("b")
    lake.table("b").add_files(lake.data_files("a"))
    lake.overwrite("a", 3)
    remembered = plan(lake)
    monkeypatch.setenv("FIRNLINE_CACHE", "off")
    changing = {"now": "", "policy": ""}  # the instant that the plan is made for
    assert plan(lake).to_json() | changing == remembered.to_json() | changing
    assert remembered.spared["needed-elsewhere"].files == 1


def test_what_somebody_wrote_into_the_cache_is_not_believed(lake: RealLake) -> None:
    history(lake, "a")
    lake.create("b")
    lake.table("b").add_files(lake.data_files("a"))
    lake.overwrite("a", 3)
    assert plan(lake).spared["needed-elsewhere"].files == 1
    for entry in (lake.folder / "cache").rglob("*"):
        if entry.is_file():
            entry.write_bytes(entry.read_bytes().replace(b"/db/a/", b"/db/x/"))
    assert plan(lake).spared["needed-elsewhere"].files == 1


def test_a_reference_that_is_gone_holds_nothing_back(lake: RealLake) -> None:
    history(lake, "a")
    lake.create("b")
    lake.table("b").add_files(lake.data_files("a"))
    lake.overwrite("a", 3)
    assert plan(lake).spared["needed-elsewhere"].files == 1
    lake.overwrite("b", 9)
    lake.expire("b")
    assert "needed-elsewhere" not in plan(lake).spared


def test_what_a_run_of_a_neighbour_may_bring_back_stays(lake: RealLake) -> None:
    history(lake, "a")
    lake.create("b")
    lake.table("b").add_files(lake.data_files("a"))
    lake.overwrite("b", 9)
    undoable = lake.expire("b", grace="1h").run
    lake.overwrite("a", 3)
    lake.expire("a")
    lake.firnline().undo(str(undoable.id))
    assert [2] in lake.read_all("b")


def test_a_hold_that_a_wrong_clock_took_for_over_counts_again(lake: RealLake) -> None:
    history(lake, "a")
    lake.create("b")
    files = lake.data_files("a")
    lake.table("b").add_files(files)
    held = str(lake.table("b").current_snapshot().snapshot_id)
    lake.overwrite("b", 9)
    undoable = lake.expire("b", grace="1h").run
    work = lake.firnline().places.table_context("lake.db.b")
    add_hold(work, Hold("audit", "a person", "a case", held, now_ms() + 5 * DAY_MS))
    dated(lake.firnline(), Clock(DAY_MS)).purge(str(undoable.id))
    lake.overwrite("a", 3)
    ahead = dated(lake.firnline(), Clock(skew_ms=400 * DAY_MS))
    assert "needed-elsewhere" not in ahead.plan("lake.db.a", older_than=now_ms(), retain_last=1).plan.spared
    lake.expire("a")
    assert all(Path(each.removeprefix("file://")).exists() for each in files)


@pytest.mark.parametrize("damage", ["metadata", "list", "manifest"])
def test_a_neighbour_that_cannot_be_read_stops_the_run_unless_it_is_excused(lake: RealLake, damage: str) -> None:
    history(lake, "a", "b")
    folder = lake.folder / "warehouse" / "db" / "b" / "metadata"
    spoil(lake, folder, damage)
    assert "lake.db.b" in plan(lake).conflict.why
    assert "sharing: none" in plan(lake).conflict.hint
    with pytest.raises(RefusedForSafety, match=r"lake\.db\.b"):
        lake.expire("a")
    lake.policy = yaml.safe_dump({"catalogs": {"lake": {"namespaces": {"db": {"tables": {"b": {"sharing": "none"}}}}}}})
    assert plan(lake).conflict is None


def spoil(lake: RealLake, folder: Path, what: str) -> None:
    if what == "metadata":
        Path(lake.table("b").metadata_location.removeprefix("file://")).write_bytes(b"{")
        return
    for each in folder.glob("snap-*.avro" if what == "list" else "*-m0.avro"):
        each.write_bytes(b"no avro")


def test_sharing_none_asks_nobody_and_the_plan_says_so(lake: RealLake) -> None:
    history(lake, "a")
    lake.create("b")
    lake.table("b").add_files(lake.data_files("a"))
    lake.overwrite("a", 3)
    lake.policy = "sharing: none"
    found = plan(lake)
    assert found.asked is None
    assert any("sharing is none" in note for note in found.notes)
    assert "needed-elsewhere" not in found.spared
    assert json.loads(json.dumps(found.to_json()))["asked"] is None


def test_a_table_cannot_turn_the_question_off_by_itself(lake: RealLake) -> None:
    lake.create("a", **{"firnline.sharing": "none"})
    lake.append("a", 1, 2)
    lake.create("b")
    lake.table("b").add_files(lake.data_files("a"))
    lake.overwrite("a", 3)
    assert plan(lake).spared["needed-elsewhere"].files == 1


def test_two_names_for_one_catalog_are_not_two_registrations() -> None:
    """A server's catalog may be configured twice, with other rights; a SQL catalog's name is in its rows."""
    at = "http://127.0.0.1:1/"
    one, other = (CatalogSettings(name, "rest", at, {"warehouse": "w", "token": name}) for name in ("a", "b"))
    assert one.address == other.address
    assert one.address != CatalogSettings("a", "rest", at, {"warehouse": "v"}).address
    assert one.address == CatalogSettings("a", "rest", f"{at}/", {"warehouse": "w"}).address
    accounts = {CatalogSettings("a", "glue", "", {"glue.id": each}).address for each in ("1", "2")}
    assert len(accounts) == 2
    rows = {CatalogSettings(name, "sql", "sqlite:///x.db").address for name in ("a", "b")}
    assert len(rows) == 2
    assert not any("127" in each.address for each in (one, other))


@pytest.mark.parametrize("where", ["location", "write.data.path", "write.metadata.path", "data"])
def test_a_folder_that_two_tables_use_is_refused_unless_the_policy_names_the_other(lake: RealLake, where: str) -> None:
    history(lake, "a")
    folder = lake.table("a").location()
    if where == "location":
        schema = lake.table("a").schema()
        lake.catalog.create_table("db.b", schema, location=folder)
    else:
        name = "write.data.path" if where == "data" else where
        lake.create("b", **{name: folder + ("/metadata" if "metadata" in where else "/data")})
    assert "lake.db.b uses the folder" in plan(lake).conflict.why
    with pytest.raises(RefusedForSafety, match=r"lake\.db\.b"):
        lake.expire("a")
    lake.policy = "shared-with: [lake.db.b]"
    assert plan(lake).conflict is None


def test_a_table_inside_the_folder_of_another_keeps_its_own(lake: RealLake) -> None:
    history(lake, "a")
    inner = f"{lake.table('a').location()}/data/inner"
    lake.catalog.create_table("db.inner", lake.table("a").schema(), location=inner)
    lake.append("inner", 7)
    lake.table("a").add_files(lake.data_files("inner"))
    lake.overwrite("a", 4)
    found = plan(lake)
    assert any("inner" in note for note in found.notes)
    lake.expire("a")
    assert lake.read("inner") == [7]


def test_folders_inside_each_other_are_found_without_looking_at_all() -> None:
    tables = [Folders(("f://x/",), ()), Folders(("f://x/a/", "f://y/"), ()), Folders(("f://x/a/b/",), ())]
    found = FolderMap(enumerate(tables))
    assert found.holes(0, tables[0]) == ("f://x/a/",)
    assert found.holes(1, tables[1]) == ("f://x/a/b/",)
    assert found.holes(2, tables[2]) == ()


def test_many_folders_are_gathered_to_a_few_that_hold_them() -> None:
    many = {f"s3://b/t/p={number}/" for number in range(1_000)}
    assert gathered(many) == ("s3://b/t/",)
    bridge = Bridge(File(FileKind.MANIFEST, "s3://b/c/m"), gathered(many))
    assert bridge.leads_into(["s3://b/t/p=7/"])
    assert not bridge.leads_into(["s3://b/tt/"])
    local = {f"file:///t/p={number}/" for number in range(100)}
    assert gathered(many | local) == (*sorted(local), "s3://b/t/")


def test_why_names_the_other_table_that_needs_a_file(lake: RealLake) -> None:
    history(lake, "a")
    lake.create("b")
    (taken,) = lake.data_files("a")
    lake.table("b").add_files([taken])
    lake.overwrite("a", 3)
    answer = lake.firnline().why("lake.db.a", taken, older_than=now_ms(), retain_last=1)
    assert answer.kept
    assert [(each.kind, each.snapshot) for each in answer.needed_by if each.kept] == [("table", "lake.db.b")]


def test_a_neighbour_that_moves_on_while_it_is_walked_is_walked_again(
    lake: RealLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process expires and purges it just after its metadata was read: the lists of that version are gone."""
    history(lake, "a", "b")
    walk, expired = Index._walk_at, []

    def meanwhile(self: Index, each: Indexed, *rest: Any) -> Card:
        if not expired:
            expired.append(lake.expire("b"))
        return walk(self, each, *rest)

    monkeypatch.setattr(Index, "_walk_at", meanwhile)
    lake.policy = "sharing: none"  # for the expiry of b alone: it asks nobody
    process = open_lake(engine="local")
    found = process.plan("lake.db.a", older_than=now_ms(), retain_last=1).plan
    assert found.conflict is None
    assert expired
