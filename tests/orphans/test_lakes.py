"""Random lakes: a search of all tables at once says of each what its own search says, and deletes no more."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firnline.app.engines import Engines
from firnline.app.lake_wide import searches as lake_searches
from firnline.errors import FirnlineError, RefusedForSafety, UnreadableMetadata
from firnline.journal.layout import RECORDS
from firnline.local.engine import LocalEngine
from firnline.plans.orphans import OrphanPlan
from firnline.ports.listings import KeyRange
from firnline.stores.ranges import ObjectRanges
from harness.crowds import Crowd
from harness.writers import Item

FULL = bool(os.environ.get("FIRNLINE_FULL"))
FOLDERS = count()
YOUNG_DAYS = 0.5
PLACES = ("data/{}.parquet", "data/deep/{}.parquet", "metadata/snap-{}.avro", "metadata/{}-m0.avro", "notes/{}.txt")
DOUBTS = ("held", "stranger", "fork", "records elsewhere")
Answer = dict[str, Any] | tuple[type[FirnlineError], str]


@dataclass(frozen=True, slots=True)
class Drawn:
    """One table: whether it lies in the folder of the one before, in the very same one, or is another registration of
    it as it was; whether it imports a stray of that one; how many commits it has, its strays by place and youth, and
    what is doubtful there.
    """

    where: str
    imports: bool
    commits: int
    strays: tuple[tuple[int, bool], ...]
    doubt: str | None


tables = st.builds(
    Drawn,
    st.sampled_from(["beside", "beside", "inside", "same folder", "again"]),
    st.booleans(),
    st.integers(0, 2),
    st.lists(st.tuples(st.integers(0, len(PLACES) - 1), st.booleans()), max_size=4).map(tuple),
    st.one_of(*[st.none()] * 4, st.sampled_from(DOUBTS)),
)
lakes = st.lists(tables, min_size=2, max_size=5)


class Lake:
    """A crowd in which the size of each stray tells which one it is: sums tell which are counted."""

    def __init__(self, folder: Path) -> None:
        self.crowd = Crowd.make(folder)
        self.names: list[str] = []
        self._sizes = (1 << bit for bit in count(4))
        self._places: list[str] = []
        self._items: list[Item] = []

    def add(self, drawn: Drawn) -> None:
        name = f"t{len(self.names)}"
        before = self._places[-1] if self._places else ""
        if drawn.where == "again" and before:
            other = next(each for each in reversed(self.crowd.writers.values()))
            self.crowd.pointers.register(name, other.place())
            self._named(name, before)
            return
        place = {"inside": f"{before}/data/inner", "same folder": before}.get(drawn.where, name) if before else name
        writer = self.crowd.table(name, inside=place, commits=drawn.commits)
        if drawn.imports and self._items:
            writer.commit("append", self._items[-1:])
        self._items.append(writer.data_file())
        self.crowd.age(self.crowd.folder / "lake" / place)
        for number, (kind, is_young) in enumerate(drawn.strays):
            path = f"{place}/{PLACES[kind].format(f'{name}-{number}')}"
            data = b"x" * next(self._sizes)
            self.crowd.stray(path, YOUNG_DAYS if is_young else 10, data=data)
        self._doubt(name, place, drawn.doubt)
        self._named(name, place)

    def _named(self, name: str, place: str) -> None:
        self._places.append(place)
        self.names.append(self.crowd.name(name))

    def _doubt(self, name: str, place: str, doubt: str | None) -> None:
        writer = self.crowd.writers[name]
        if doubt == "held":
            writer.change(lambda document: document["properties"].update({"gc.enabled": "false"}))
        if doubt == "records elsewhere":
            writer.change(lambda document: document["properties"].update({RECORDS: "file:///elsewhere"}))
        if doubt in ("stranger", "fork"):
            strange = self.crowd.folder / "lake" / place / "metadata" / f"00009-{name}.metadata.json"
            text = Path(writer.place().removeprefix("file://")).read_text()
            uuid = writer.document()["table-uuid"]
            strange.write_text(text.replace(uuid, "strange") if doubt == "stranger" else text)
            self.crowd.set_age(strange, 10)

    def alone(self) -> list[Answer]:
        return [self._alone(name) for name in self.names]

    def together(self) -> list[Answer]:
        answers = self.crowd.process().several(self.names).orphans(dry_run=True, blast_radius=1.0)
        assert [each.table for each in answers] == self.names
        return [_said(each.problem) if each.value is None else _plain(each.value.plan) for each in answers]

    def _alone(self, name: str) -> Answer:
        try:
            return _plain(self.crowd.process().orphans(name, dry_run=True, blast_radius=1.0)[0])
        except FirnlineError as problem:
            return _said(problem)


def _plain(plan: OrphanPlan) -> dict[str, Any]:
    return {name: said for name, said in plan.to_json().items() if name not in ("now", "older_than")}


def _said(problem: FirnlineError | None) -> tuple[type[FirnlineError], str]:
    assert problem is not None
    return type(problem), problem.message


@settings(max_examples=400 if FULL else 12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=lakes, in_passes=st.booleans())
def test_a_search_of_a_lake_is_that_of_each_table(drawn: list[Drawn], in_passes: bool, tmp_path: Path) -> None:
    lake = Lake(tmp_path / f"{next(FOLDERS)}")
    for each in drawn:
        lake.add(each)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(lake_searches, "FILES_OF_A_PASS", 3 if in_passes else 1_000_000)
        assert lake.together() == lake.alone()


def searched(crowd: Crowd, *tables: str, **asked: Any) -> dict[str, Any]:
    """Returns what a search of several tables says of each: its plan, or what stopped it."""
    said = {"grace": "0s", "blast_radius": 1.0, **asked}
    answers = crowd.process().several([crowd.name(each) for each in tables]).orphans(**said)
    short = {crowd.name(each): each for each in tables}
    return {short[each.table]: each.problem if each.value is None else each.value.plan for each in answers}


def test_what_goes_is_what_no_table_needs(crowd: Crowd) -> None:
    crowd.table("outer")
    inner = crowd.table("inner", inside="outer/data/inner")
    crowd.table("beside")
    strays = [crowd.stray(f"{place}/data/left.parquet") for place in ("outer", "outer/data/inner", "beside")]
    imported = crowd.writers["beside"].data_file()
    inner.commit("append", [imported])
    crowd.age(crowd.folder / "lake")
    found = searched(crowd, "outer", "inner", "beside", confirm=lambda plans: True)
    assert {name: plan.victims.all.files for name, plan in found.items()} == dict.fromkeys(found, 1)
    assert not set(strays) & crowd.files()
    assert imported.path in crowd.files()
    crowd.check()


def test_a_doubt_about_one_table_stops_its_own_search_alone(crowd: Crowd) -> None:
    for name in ("a", "b", "c"):
        crowd.table(name)
        crowd.stray(f"{name}/data/left.parquet")
    strange = crowd.folder / "lake/b/metadata/00009-x.metadata.json"
    text = Path(crowd.writers["b"].place().removeprefix("file://")).read_text()
    strange.write_text(text.replace(crowd.writers["b"].document()["table-uuid"], "a-table-nobody-knows"))
    found = searched(crowd, "a", "b", "c", dry_run=True)
    assert isinstance(found["b"], RefusedForSafety)
    assert [found[name].victims.all.files for name in ("a", "c")] == [1, 1]


def test_a_table_that_cannot_be_read_makes_no_orphan_of_what_it_may_need(crowd: Crowd) -> None:
    """Nobody knows what it needs, in whatever folder: nothing is an orphan until it can be read, or is dropped."""
    for name in ("a", "b"):
        crowd.table(name)
        crowd.stray(f"{name}/data/left.parquet")
    manifest = next(iter(crowd.ledger.truths[max(crowd.ledger.truths)].manifests)).path
    whole = Path(manifest.removeprefix("file://"))
    whole.rename(whole.with_suffix(".away"))
    found = searched(crowd, "a", confirm=lambda plans: True)
    assert isinstance(found["a"], UnreadableMetadata)
    assert manifest in found["a"].message
    metadata = Path(crowd.writers["b"].place().removeprefix("file://"))
    metadata.write_text("{")
    found = searched(crowd, "a", "b", confirm=lambda plans: True)
    assert all(isinstance(each, FirnlineError) for each in found.values())
    assert crowd.strays <= crowd.files()


def test_a_file_that_a_table_imports_while_folders_are_listed_is_no_orphan(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of `a` is listed when it takes in a file of `z`, which is listed later."""
    for name in ("a", "m", "z"):
        crowd.table(name)
    stray = crowd.writers["z"].data_file()
    crowd.age(crowd.folder / "lake/z")
    left = crowd.stray("m/data/left.parquet")
    batches = ObjectRanges.batches
    imports = iter([stray])

    def listing(ranges: ObjectRanges, piece: KeyRange) -> Iterator[Any]:
        if "/z" in piece.folder:
            for item in imports:
                crowd.writers["a"].commit("append", [item])
        return batches(ranges, piece)

    monkeypatch.setattr(ObjectRanges, "batches", listing)
    found = searched(crowd, "a", "m", "z", confirm=lambda plans: True)
    assert {name: plan.victims.all.files for name, plan in found.items()} == {"a": 0, "m": 1, "z": 0}
    assert stray.path in crowd.files()
    assert left not in crowd.files()
    crowd.check()


def test_folders_in_one_another_are_listed_once(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, place in (("outer", "outer"), ("inner", "outer/data/inner"), ("inmost", "outer/data/inner/data/x")):
        crowd.table(name, inside=place)
    rows: list[str] = []
    batches = ObjectRanges.batches

    def listing(ranges: ObjectRanges, piece: KeyRange) -> Iterator[Any]:
        for batch in batches(ranges, piece):
            rows.extend(batch.column("key").to_pylist())
            yield batch

    monkeypatch.setattr(ObjectRanges, "batches", listing)
    searched(crowd, "outer", "inner", "inmost", dry_run=True)
    assert len(rows) == len(set(rows))
    assert len(rows) >= len(crowd.files())


def test_a_table_that_is_led_to_by_a_link_is_searched_by_itself(crowd: Crowd) -> None:
    """By the link it lies in another's folder: by its own name it does not."""
    crowd.table("a")
    crowd.table("b")
    link = crowd.folder / "lake/a/data/link"
    link.symlink_to(crowd.folder / "lake/b")
    crowd.table("c", inside="a/data/link/data/c")
    for place in ("a", "b", "b/data/c"):
        crowd.stray(f"{place}/data/left.parquet")
    alone = Lake.__new__(Lake)
    alone.crowd, alone.names = crowd, [crowd.name(name) for name in "abc"]
    assert alone.together() == alone.alone()


def test_a_listing_that_is_too_large_for_threads_goes_on_elsewhere(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        crowd.table(name)
        crowd.stray(f"{name}/data/left.parquet")
    process = crowd.process()
    process.places.engines.named = "auto"
    chosen: list[str] = []

    def spark(engines: Engines, of: str, *places: str) -> LocalEngine:
        chosen.append(of)
        return LocalEngine()

    monkeypatch.setattr(Engines, "spark", spark)
    monkeypatch.setattr("firnline.app.engines._LARGE_LISTING", 3)
    answers = process.several([crowd.name("a"), crowd.name("b")]).orphans(dry_run=True)
    assert [each.value.plan.victims.all.files for each in answers if each.value] == [1, 1]
    assert chosen == ["several tables"]


def test_an_inventory_serves_many_tables_as_it_serves_one(crowd: Crowd, tmp_path: Path) -> None:
    for name, place in (("a", "a"), ("b", "b"), ("inner", "a/data/inner")):
        crowd.table(name, inside=place)
        crowd.stray(f"{place}/data/left.parquet")
    paths = sorted(crowd.files())
    sizes = [Path(path.removeprefix("file://")).stat().st_size for path in paths]
    rows = {"path": paths, "size": sizes, "modified": [1_577_836_800_000] * len(paths)}
    pq.write_table(pa.table(rows), tmp_path / "inventory.parquet")
    unlisted = crowd.stray("b/data/unlisted.parquet")
    found = searched(crowd, "a", "b", "inner", dry_run=True, inventory=tmp_path / "inventory.parquet")
    assert {name: plan.victims.all.files for name, plan in found.items()} == dict.fromkeys(found, 1)
    assert unlisted in crowd.files()


def test_what_stops_all_searches_is_told_of_each_also_if_the_first_is_stopped_by_itself(crowd: Crowd) -> None:
    """The first answer is there before anything is counted, and a unit that cannot be read is met after it."""
    for name in ("alone", "a", "b"):
        crowd.table(name)
        crowd.stray(f"{name}/data/left.parquet")
    location = crowd.writers["alone"].place()
    crowd.pointers.drop("alone")
    record = crowd.folder / "lake/alone/_firnline/runs/20260101T000000Z-aaaaaa/plan.json"
    record.parent.mkdir(parents=True)
    record.write_text("{")
    manifest = next(iter(crowd.ledger.truths[max(crowd.ledger.truths)].manifests)).path
    Path(manifest.removeprefix("file://")).unlink()
    answers = crowd.process().several([location, crowd.name("a"), crowd.name("b")]).orphans(dry_run=True)
    first, *others = (each.problem for each in answers)
    assert isinstance(first, FirnlineError)
    assert "plan.json" in first.message
    assert all(isinstance(each, UnreadableMetadata) and manifest in each.message for each in others)


def test_ctrl_c_ends_a_search_while_folders_are_listed(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python raises it in the main thread alone: so that is where folders are listed and units opened."""
    for name in ("a", "b"):
        crowd.table(name, commits=0)
    seen: list[threading.Thread] = []
    listing = LocalEngine.list

    def watched(engine: LocalEngine, *asked: Any) -> Any:
        seen.append(threading.current_thread())
        return listing(engine, *asked)

    monkeypatch.setattr(LocalEngine, "list", watched)
    searched(crowd, "a", "b", dry_run=True)
    assert seen == [threading.main_thread()]


def test_of_several_strangers_the_same_one_is_named_each_time(crowd: Crowd) -> None:
    """Which folder was listed first is chance."""
    crowd.table("outer")
    crowd.table("inner", inside="outer/data/inner")
    for place, name in (("outer/data/inner", "inner"), ("outer", "outer")):
        writer = crowd.writers[name]
        strange = crowd.folder / "lake" / place / "metadata" / "00009-strange.metadata.json"
        text = Path(writer.place().removeprefix("file://")).read_text()
        strange.write_text(text.replace(writer.document()["table-uuid"], f"strange-{name}"))
        crowd.set_age(strange, 10)
    for _ in range(5):
        found = searched(crowd, "outer", "inner")
        assert "strange-inner" in str(found["outer"]), "by the alphabet data comes before metadata"
        with pytest.raises(RefusedForSafety, match="strange-inner"):
            crowd.process().orphans(crowd.name("outer"), dry_run=True)
