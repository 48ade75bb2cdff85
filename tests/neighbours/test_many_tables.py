"""Many tables at once: each is planned as if it were alone, and one that fails stops no other."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyiceberg.catalog.sql import SqlCatalog

from firnline.app.many import on_each, unless_stopped
from firnline.app.places import now_ms
from firnline.cli.main import run
from firnline.errors import Interrupted, NoSuchTable, UnreadableMetadata
from firnline.formats.iceberg.expand import IcebergExpand
from firnline.model.files import File, Tally
from firnline.plans.lake_wide import (
    MOST_IDLE,
    TablePlan,
    lake_wide_json,
    lake_wide_page,
    refusal_in,
    sums_of,
    victims_in,
)
from firnline.plans.plan import Plan
from firnline.ports.catalogs import TableName
from firnline.ports.engines import TableWalk
from firnline.ports.expanding import Expanded, Together
from firnline.ports.progress import Silent
from firnline.walking.axis import Pass, passes_of
from tests.neighbours.lakes import RealLake

ASKED: dict[str, Any] = {"retain_last": 1, "blast_radius": 1.0}


@pytest.fixture
def five(lake: RealLake) -> RealLake:
    """Tables of one to five snapshots; b reads a file of a, c is a clone of b."""
    for number, name in enumerate("abde", 1):
        lake.create(name)
        for each in range(number):
            lake.append(name, each) if each % 2 == 0 else lake.overwrite(name, each)
    lake.table("b").add_files(lake.data_files("a"))
    lake.clone("b", "c")
    return lake


def planned(lake: RealLake, *texts: str, **asked: Any) -> dict[str, TablePlan]:
    found = lake.firnline().several(texts or None).plan(older_than=now_ms(), **ASKED, **asked)
    return {each.table: each for each in found}


def damage(lake: RealLake, name: str) -> None:
    snapshot = lake.table(name).snapshots()[0]
    Path(snapshot.manifest_list.removeprefix("file://")).write_bytes(b"Obj\x01 cut")


def _without_sizes(plan: Plan) -> dict[str, Any]:
    """Returns a plan as JSON. One of a single table asks how large each version of its metadata is; of many, none."""
    found = plan.to_json()
    return {**found, "metadata_versions": found["metadata_versions"]["versions"]}


@pytest.mark.parametrize("at_once", [1, 8])
def test_each_plan_is_the_one_of_its_table_alone(five: RealLake, at_once: int) -> None:
    asked: dict[str, Any] = {"older_than": now_ms(), "now": now_ms(), **ASKED}
    together = {each.table: each for each in five.firnline().several(at_once=at_once).plan(**asked)}
    assert sorted(together) == [f"lake.db.{name}" for name in "abcde"]
    for name, each in together.items():
        alone = five.firnline().plan(name, **asked).plan
        assert each.value is not None
        assert _without_sizes(each.value) == _without_sizes(alone), name
    assert any(victims_in(each).files for each in together.values())


def test_tables_of_catalogs_with_servers_of_their_own_share_no_unit(
    five: RealLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have the same tables here, by the same names; on servers of their own these would be other objects."""
    settings = yaml.safe_load((five.folder / ".pyiceberg.yaml").read_text())
    first = settings["catalog"]["lake"]
    settings["catalog"] = {
        "lake": {**first, "s3.endpoint": "http://here.example"},
        "other": {**first, "s3.endpoint": "http://there.example"},
    }
    (five.folder / ".pyiceberg.yaml").write_text(yaml.safe_dump(settings))
    with closing(SqlCatalog("other", **first)) as other:
        other.create_namespace("db")
        for name in "bde":
            other.register_table(f"db.{name}", five.table(name).metadata_location)
    begun: list[list[Pass]] = []

    def noted(walks: Sequence[TableWalk]) -> list[Pass]:
        begun.append(passes_of(walks))
        return begun[-1]

    monkeypatch.setattr("firnline.walking.axis.passes_of", noted)
    five.policy = "sharing: none\n"
    answers = planned(five)
    assert {each.problem for each in answers.values()} == {None}
    ((here, there),) = begun
    assert set(here.means.axis.walks(here.spans.start)).isdisjoint(there.means.axis.walks(there.spans.start))


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_one_pass_on_spark_says_the_same_of_every_table(five: RealLake) -> None:
    """A damaged one stops none of the others."""
    damage(five, "e")
    asked: dict[str, Any] = {"older_than": now_ms(), "now": now_ms(), **ASKED}
    here = {each.table: each for each in five.firnline().several().plan(**asked)}
    there = {each.table: each for each in five.firnline("spark").several().plan(**asked)}
    assert here.keys() == there.keys()
    assert isinstance(there.pop("lake.db.e").problem, UnreadableMetadata)
    for name, each in there.items():
        expected = here[name].value
        assert expected is not None
        assert each.value is not None
        assert each.value.engine == ("spark" if expected.engine == "local" else "none")
        assert {**each.value.to_json(), "engine": expected.engine} == expected.to_json()


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_lists_of_one_pass_on_spark_reach_the_record_of_their_table(five: RealLake) -> None:
    planned_here = planned(five)
    rows = {name: five.read(name) for name in "abcde"}
    for each in five.firnline("spark").several().expire(older_than=now_ms(), grace="0s", **ASKED):
        assert each.problem is None
        assert each.value is not None
        went = Tally() if each.value.status is None else each.value.status.outcomes.get("deleted", Tally())
        assert went == victims_in(planned_here[each.table])
    assert {name: five.read(name) for name in "abcde"} == rows


def test_a_damaged_table_is_told_and_stops_no_other(five: RealLake) -> None:
    damage(five, "d")
    found = planned(five)
    assert isinstance(found["lake.db.d"].problem, UnreadableMetadata)
    assert all(each.value is not None for name, each in found.items() if name != "lake.db.d")


@pytest.mark.parametrize("policy", ["", "sharing: none\n"])
def test_what_nobody_foresaw_in_the_units_of_one_table_stops_no_other(
    five: RealLake, monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    really = IcebergExpand.__call__

    def stumbling(self: IcebergExpand, units: Sequence[File], together: Together = map) -> Expanded:
        if any("/db/d/" in each.key for each in units):
            raise ZeroDivisionError("a mistake of ours")
        return really(self, units, together)

    monkeypatch.setattr(IcebergExpand, "__call__", stumbling)
    five.policy = policy
    found = planned(five)
    assert "a mistake of ours" in str(found["lake.db.d"].problem)
    assert [name for name, each in found.items() if each.value is None] == ["lake.db.d"]
    refused = {name for name, each in found.items() if each.value is not None and each.value.conflict}
    assert refused == (set() if policy else {f"lake.db.{name}" for name in "bce"}), "d may need any file of theirs"


def test_a_catalog_that_cannot_be_read_is_told_and_hides_no_other(five: RealLake) -> None:
    config = five.folder / ".pyiceberg.yaml"
    config.write_text(config.read_text() + "  other:\n    type: sql\n    uri: sqlite:////nowhere/at/all.db\n")
    found = planned(five)
    assert found["other"].problem is not None
    assert len(found) == 6


def test_a_pattern_of_one_catalog_does_not_ask_another_one(five: RealLake) -> None:
    config = five.folder / ".pyiceberg.yaml"
    config.write_text(config.read_text() + "  lane:\n    type: sql\n    uri: sqlite:////nowhere/at/all.db\n")
    assert sorted(planned(five, "lake.db.?")) == [f"lake.db.{name}" for name in "abcde"]
    found = planned(five, "la*.a")
    assert found["lane"].problem is not None, "it may have such a table"
    assert sorted(found) == ["lake.db.a", "lane"]
    assert list(planned(five, "lane.*")) == ["lane"]
    with pytest.raises(NoSuchTable, match=r"lake\.none"):
        planned(five, "lake.none*")


@pytest.mark.parametrize(
    ("texts", "names"),
    [
        (("lake.db.a", "lake.db.e"), "ae"),
        (("lake.*.[ab]",), "ab"),
        (("db.?",), "abcde"),
        (("lake.db.a", "lake.db.*"), "abcde"),
    ],
)
def test_tables_are_named_by_texts_and_patterns_each_once(five: RealLake, texts: tuple[str, ...], names: str) -> None:
    assert sorted(planned(five, *texts)) == [f"lake.db.{name}" for name in names]


def test_a_pattern_that_means_nothing_is_refused(five: RealLake) -> None:
    with pytest.raises(NoSuchTable, match=r"lake\.sales\.\*"):
        planned(five, "lake.sales.*")


def test_a_name_that_is_gone_is_told_and_stops_no_other(five: RealLake) -> None:
    """A list of names outlives its tables; its catalogs may be away."""
    config = five.folder / ".pyiceberg.yaml"
    config.write_text(config.read_text() + "  other:\n    type: sql\n    uri: sqlite:////nowhere/at/all.db\n")
    found = planned(five, "lake.db.a", "lake.db.gone", "other.db.x", "lake.db.none*", "lake.db.e")
    assert {name for name, each in found.items() if each.problem is None} == {"lake.db.a", "lake.db.e"}
    assert isinstance(found["lake.db.gone"].problem, NoSuchTable)
    assert isinstance(found["lake.db.none*"].problem, NoSuchTable)
    assert found["other.db.x"].problem is not None
    with pytest.raises(NoSuchTable):
        planned(five, "lake.db.gone")


def test_an_expiry_of_a_list_with_a_name_that_is_gone_goes_on(
    five: RealLake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(five.folder)
    words = ["--retain-last", "1", "--older-than", str(now_ms()), "--blast-radius", "100%", "--yes"]
    assert run(["expire", "lake.db.e", "lake.db.gone", *words]) == NoSuchTable.exit_code
    assert "no table lake.db.gone" in capsys.readouterr().out
    assert len(five.firnline().runs("lake.db.e")) == 1


def test_a_star_within_quotes_is_a_name(lake: RealLake) -> None:
    lake.create('"*"')
    lake.create("plain")
    assert len(planned(lake, "lake.db.*")) == 2


@pytest.mark.parametrize("name", ["s*r", "s?r", "[s]*"])
def test_a_name_as_it_is_shown_means_that_table_alone(lake: RealLake, name: str) -> None:
    lake.catalog.create_table(("db", name), lake.create("star").schema(), location=f"file://{lake.folder}/odd")
    lake.create("sir")
    (shown,) = [str(each) for each in lake.firnline().tables() if each.name == name]
    assert list(planned(lake, shown)) == [shown]


def test_saved_plans_are_runs_of_their_tables(five: RealLake) -> None:
    found = planned(five, "lake.db.d", "lake.db.e", save=True)
    for name, each in found.items():
        assert each.value is not None
        assert five.firnline().run(str(each.value.run)).run.plan["table"] == name


def test_the_page_begins_with_what_needs_a_person_and_ends_with_sums(five: RealLake) -> None:
    damage(five, "d")
    plans = list(planned(five).values())
    lines = lake_wide_page(plans).to_text().splitlines()
    assert lines[1].lstrip().startswith("lake.db.d")
    sums = sums_of(plans)
    assert (sums["tables"], sums["failed"]) == (5, 1)
    assert sums["victims"]["files"] == sum(victims_in(each).files for each in plans if refusal_in(each) is None)
    said = lake_wide_json(plans)
    assert [each["error"] is None for each in said["tables"]] == [False, True, True, True, True]
    assert json.loads(json.dumps(said)) == said


def test_tables_of_which_nothing_goes_share_a_line_if_there_are_many(
    five: RealLake, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(MOST_IDLE):
        five.create(f"idle{number}")
    monkeypatch.chdir(five.folder)
    words = ["plan", "--all", "--retain-last", "1", "--older-than", str(now_ms()), "--blast-radius", "100%"]
    assert run(words) == 0
    shown = capsys.readouterr().out
    assert f"and {MOST_IDLE + 1} tables more" in shown  # `a` has one snapshot
    assert "lake.db.e" in shown
    assert "15 tables" in shown
    assert not any(f"idle{number}" in shown for number in range(MOST_IDLE))
    assert "--list" in capsys.readouterr().err + shown
    assert run([*words, "--list"]) == 0
    listed = capsys.readouterr().out
    assert all(f"idle{number}" in listed for number in range(MOST_IDLE))
    assert "tables more" not in listed
    assert run(["expire", "--all", "--yes", *words[2:]]) == 0
    assert f"and {MOST_IDLE + 1} tables more" in capsys.readouterr().out


def test_the_command_shows_all_and_exits_with_what_went_wrong(
    five: RealLake, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(five.folder)
    assert run(["plan", "--all"]) == 0
    assert "5 tables" in capsys.readouterr().out
    damage(five, "d")
    expected = UnreadableMetadata("").exit_code
    assert run(["plan", "lake.db.*", "--retain-last", "1", "--older-than", str(now_ms()), "--json"]) == expected
    assert {each["table"] for each in json.loads(capsys.readouterr().out)["tables"]} == {
        f"lake.db.{x}" for x in "abcde"
    }


@pytest.mark.parametrize("words", [["plan"], ["plan", "lake.db.a", "--all"], ["plan", "--all", "--files", "x.csv"]])
def test_what_makes_no_sense_is_refused_before_anything_is_read(five: RealLake, words: list[str]) -> None:
    assert run(words) == 2


def test_an_interrupt_stops_before_the_next_table() -> None:
    names = [TableName("lake", ("db",), str(number)) for number in range(50)]
    asked = threading.Event()
    done: list[TableName] = []

    def act(name: TableName) -> None:
        done.append(name)
        asked.set()

    answers = list(on_each(names, act, 2, asked.is_set, Silent()))
    assert 1 <= len(done) <= 3
    assert [each.table for each in answers if each.problem is None] == [str(name) for name in sorted(done, key=str)]
    with pytest.raises(Interrupted):
        list(unless_stopped(iter(answers)))


def test_no_more_than_so_many_are_under_way() -> None:
    names = [TableName("lake", ("db",), str(number)) for number in range(30)]
    under_way, most, lock = set[TableName](), [0], threading.Lock()
    gate: Callable[[], bool] = lambda: False  # noqa: E731

    def act(name: TableName) -> str:
        with lock:
            under_way.add(name)
            most[0] = max(most[0], len(under_way))
        threading.Event().wait(0.01)
        with lock:
            under_way.remove(name)
        return name.name

    answers = list(on_each(names, act, 3, gate, Silent()))
    assert [each.value for each in answers] == [name.name for name in names]
    assert most[0] <= 3


def test_many_tables_are_checked_at_once_and_what_is_missing_comes_first(
    five: RealLake, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(five.folder)
    assert run(["check", "--all"]) == 0
    assert "every file is there" in capsys.readouterr().out
    lost = five.data_files("d")[0]
    Path(lost.removeprefix("file://")).unlink()
    assert run(["check", "lake.db.*", "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    first, *others = said["tables"]
    assert (first["table"], first["listed"][0]["path"]) == ("lake.db.d", lost)
    assert all(each["sound"] for each in others)
    assert (said["sums"]["tables"], said["sums"]["unsound"], said["sums"]["failed"]) == (5, 1, 0)
    damage(five, "e")
    assert run(["check", "--all"]) == UnreadableMetadata("").exit_code
    assert capsys.readouterr().out.splitlines()[1].lstrip().startswith("lake.db.e")


def test_each_check_is_the_one_of_its_table_alone(five: RealLake) -> None:
    lake = five.firnline()
    for each in lake.several().check():
        assert each.value == lake.check(each.table)
