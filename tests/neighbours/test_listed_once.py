"""Plans of many tables ask once which tables there are; what acts asks again when it does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from firnline.app.places import now_ms
from firnline.catalogs.sql import SqlCatalog
from firnline.errors import RefusedForSafety
from firnline.model.times import DAY_MS
from firnline.ops.neighbours.folders import FolderMap, Folders
from firnline.ops.neighbours.index import Index
from firnline.testing.dated import date
from tests.neighbours.lakes import RealLake
from tests.neighbours.test_index import Reads
from tests.neighbours.test_unfinished import grow, requests

LISTINGS = ("pointers", "tables", "others")


def asked(**more: Any) -> dict[str, Any]:
    return {"older_than": now_ms(), "retain_last": 1, "blast_radius": 1.0, "grace": "0s", **more}


@contextmanager
def listings() -> Iterator[Counter[str]]:
    """Counts how often the catalog is listed."""
    made: Counter[str] = Counter()

    def counted(verb: str) -> Callable[..., Any]:
        act = getattr(SqlCatalog, verb)

        def listed(*said: Any) -> Any:
            made[verb] += 1
            return act(*said)

        return listed

    with pytest.MonkeyPatch.context() as patched:
        for verb in LISTINGS:
            patched.setattr(SqlCatalog, verb, counted(verb))
        yield made


def plan(lake: RealLake) -> Any:
    answers = list(lake.firnline().several().plan(**asked()))
    assert [each.problem for each in answers if each.problem] == []
    return [each.value for each in answers]


def search(lake: RealLake) -> Any:
    answers = lake.firnline().several().orphans(dry_run=True)
    assert [each.problem for each in answers if each.problem] == []
    return [each.value for each in answers]


@pytest.mark.parametrize("act", [plan, search])
@pytest.mark.sampled(1)
def test_the_catalog_is_listed_as_often_for_nine_tables_as_for_three(
    lake: RealLake, act: Callable[[RealLake], Any]
) -> None:
    counts = []
    for names in ("abc", "def", "ghi"):
        grow(lake, *names)
        act(lake)
        with listings() as made, requests() as all_of_them:
            found = act(lake)
        counts.append((made, all_of_them["sql"], len(found)))
    assert [made for made, _, _ in counts] == [counts[0][0]] * 3
    assert [tables for _, _, tables in counts] == [3, 6, 9]
    if act is plan:  # a search opens every other table
        statements = [sql for _, sql, _ in counts]
        assert statements[2] - statements[1] == statements[1] - statements[0]


def test_every_table_is_walked_once_for_all_plans_of_a_cold_lake(
    lake: RealLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    grow(lake, *"abcd")
    monkeypatch.setenv("FIRNLINE_CACHE", "off")
    walked: Counter[str] = Counter()
    walk = Index._walk_at

    def counted(index: Index, each: Any, *said: Any) -> Any:
        walked[str(each.name)] += 1
        return walk(index, each, *said)

    monkeypatch.setattr(Index, "_walk_at", counted)
    assert all(each.asked == 3 for each in plan(lake))
    assert walked == Counter({f"lake.db.{name}": 1 for name in "abcd"})


def test_a_table_that_is_registered_again_between_the_plans_and_the_commits_is_seen(lake: RealLake) -> None:
    grow(lake, *"abc")

    def register(plans: Sequence[Any]) -> None:
        assert all(each.value.conflict is None for each in plans)
        lake.catalog.register_table("db.again", lake.table("b").metadata_location)

    found = {each.table: each for each in lake.firnline().several().expire(confirm=register, **asked())}
    assert isinstance(found["lake.db.b"].problem, RefusedForSafety)
    assert len(lake.table("b").snapshots()) == 3
    assert all(found[name].problem is None for name in ("lake.db.a", "lake.db.c"))


def test_what_a_table_needs_that_was_made_between_the_plans_and_the_purges_stays(lake: RealLake) -> None:
    """It imports a file of another table that every plan saw nobody but expired snapshots need."""
    grow(lake, *"ab")
    first = lake.table("a").snapshots()[0].snapshot_id
    (old,) = [task.file.file_path for task in lake.table("a").scan(snapshot_id=first).plan_files()]

    def make(plans: Sequence[Any]) -> None:
        lake.create("new")
        lake.table("new").add_files([old])

    found = {each.table: each for each in lake.firnline().several().expire(confirm=make, **asked())}
    assert all(each.problem is None for each in found.values())
    assert lake.read("new") == [1]
    assert lake.read("a") == [2]


def test_what_a_table_needs_that_was_made_after_the_searches_stays(lake: RealLake) -> None:
    grow(lake, *"ab")
    file = Path(lake.data_files("b")[0].removeprefix("file://"))
    orphan = Path(lake.table("a").location().removeprefix("file://")) / "data" / file.name
    orphan.write_bytes(file.read_bytes())
    date(orphan, now_ms() - 40 * DAY_MS)

    def make(plans: Sequence[Any]) -> bool:
        assert sum(each.value.victims.all.files for each in plans) == 1
        lake.create("new")
        lake.table("new").add_files([f"file://{orphan}"])
        return True

    found = lake.firnline().several().orphans(confirm=make, grace="0s", blast_radius=1.0)
    assert {str(each.problem) for each in found if each.problem} <= {""}
    assert orphan.exists()
    assert lake.read("new") == [2]


@pytest.mark.parametrize("act", [plan, search])
def test_a_table_that_goes_while_others_are_planned_stops_none_of_them(
    lake: RealLake, act: Callable[[RealLake], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The listing was taken before: by it the table is there, whoever opens it finds it gone."""
    grow(lake, *"abcd")
    act(lake)
    drop_first = iter(["d"])
    locate = SqlCatalog.locate

    def dropping(catalog: SqlCatalog, table: Any) -> str:
        for name in drop_first if table.name == "b" else ():
            lake.catalog.drop_table(f"db.{name}")
        return locate(catalog, table)

    monkeypatch.setattr(SqlCatalog, "locate", dropping)
    opened = lake.firnline().several(["lake.db.a", "lake.db.b", "lake.db.c"], at_once=1)
    answers = list(opened.plan(**asked())) if act is plan else opened.orphans(dry_run=True)
    assert [each.problem for each in answers] == [None] * 3


def test_what_lies_in_a_folder_is_found_without_looking_at_all_folders_behind_it() -> None:
    class Counted(list[Any]):
        looked = 0

        def __getitem__(self, at: Any) -> Any:
            assert not isinstance(at, slice), "a copy of all that comes behind"
            Counted.looked += 1
            return super().__getitem__(at)

    tables = [(number, Folders((f"s3://b/t{number:05}/",), ())) for number in range(5_000)]
    folders = FolderMap([*tables, (5_000, Folders(("s3://b/t00001/inner/",), ()))])
    folders._owned = Counted(folders._owned)
    assert folders.holes(1, tables[1][1]) == ("s3://b/t00001/inner/",)
    assert Counted.looked < 40


@pytest.mark.sampled(1)
@pytest.mark.parametrize("spoiled", ["metadata", "list"])
def test_a_damaged_table_is_read_once_for_all_plans_and_refuses_those_beside_it(
    lake: RealLake, monkeypatch: pytest.MonkeyPatch, spoiled: str
) -> None:
    """Each plan asked all tables again: as many looks as tables, squared."""
    names = "abcdefgh"
    for name in names:
        lake.create(name)
        lake.append(name, 1)
        lake.overwrite(name, 2)
    damaged = lake.table("e")
    snapshot = damaged.current_snapshot()
    assert snapshot is not None
    path = damaged.metadata_location if spoiled == "metadata" else snapshot.manifest_list
    Path(path.removeprefix("file://")).write_bytes(b"Obj\x01 cut")
    monkeypatch.setenv("FIRNLINE_CACHE", "off")
    reads = Reads(monkeypatch)
    answers = {each.table: each for each in lake.firnline().several().plan(**asked())}
    for name in names:
        answer = answers[f"lake.db.{name}"]
        problem = answer.problem or (None if answer.value is None else answer.value.refusal)
        assert "damaged" in str(problem), name
    assert max(reads.of(name)["metadata"] for name in names) <= 4
