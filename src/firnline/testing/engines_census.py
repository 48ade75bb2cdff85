"""What every engine must do with a listing: subclass the contract, say which engine, and pytest runs it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from firnline.errors import StoreError, UnreadableMetadata
from firnline.formats.iceberg.table import IcebergFormat
from firnline.model.files import File, FileKind, Root, Tally
from firnline.ports.engines import Engine, ServerRoots
from firnline.ports.listings import KeyRange, ObjectClass
from firnline.stores.objects import ObjectStores
from firnline.stores.ranges import ObjectRanges
from firnline.testing.censuses import OLD_MS, STRAYS, YOUNG_MS, CensusWorld, counted
from firnline.testing.counting import CountingLog
from firnline.testing.damage import remove
from firnline.testing.engines import a_long_life
from firnline.testing.lakes.engines import NamingNothing
from firnline.testing.manifests import AvroLayout
from firnline.testing.tables import QuickFiles, SmallTable


class CensusContract:
    """The contract of Engine.list and Engine.census. A subclass gives the fixture `engine`, which sees local files."""

    @pytest.fixture
    def engine(self) -> Engine:
        raise NotImplementedError

    @pytest.fixture
    def store(self) -> ObjectStores:
        return ObjectStores()

    @pytest.fixture
    def world(self, tmp_path: Path) -> CensusWorld:
        """A table with a long life, a neighbour in its folder, both published."""
        table, _ = a_long_life(SmallTable(QuickFiles(), f"file://{tmp_path}/t", AvroLayout(3)))
        neighbour = SmallTable(QuickFiles(), f"file://{tmp_path}/t/neighbour")
        neighbour.append(2)
        table.publish()
        neighbour.publish()
        return CensusWorld(table, neighbour)

    def test_every_object_is_in_its_class(self, engine: Engine, store: ObjectStores, world: CensusWorld) -> None:
        world.every_stray()
        answer = world.count(engine, store)
        assert answer.classes == world.expected()
        assert set(answer.files) == set(ObjectClass) - {ObjectClass.NEAR_MISS}
        assert sum(answer.classes.values(), Tally()) == answer.listed
        victims = {key for key, of in world.strays.items() if of is ObjectClass.VICTIM}
        assert answer.victims.keys() == victims
        assert {row[1:] for row in answer.victims.values()} == {(3, OLD_MS)}
        assert answer.victim_totals.all == Tally(len(victims), 3 * len(victims))

    def test_metadata_that_no_root_reaches_is_shown_whatever_its_class(
        self, engine: Engine, store: ObjectStores, world: CensusWorld
    ) -> None:
        world.every_stray()
        strange = {name for name in STRAYS if name.endswith(".metadata.json")}
        assert world.count(engine, store).documents == {f"{world.table.location}/{name}" for name in strange}

    def test_each_unit_is_opened_once_and_shown(
        self, engine: Engine, store: ObjectStores, world: CensusWorld, tmp_path: Path
    ) -> None:
        counting = CountingLog(store, str(tmp_path / "calls.log"))
        answer = world.count(engine, counting)
        units = {
            path
            for table in (world.table, world.neighbour)
            if table is not None
            for change in table.changes.values()
            for path in change.units
        }
        gets = Counter(key for (verb, key), n in counting.calls().items() for _ in range(n) if verb == "get")
        assert answer.units == units
        assert answer.units_opened == len(units)
        assert {path: gets[path] for path in units} == dict.fromkeys(units, 1)

    def test_nothing_listed_and_nothing_needed(self, engine: Engine, store: ObjectStores, world: CensusWorld) -> None:
        listing = engine.list([], ObjectRanges())
        census = engine.census(listing, [ServerRoots([], IcebergFormat(store).expand)], world.sort)
        assert (listing.all, census.newest_ms) == (Tally(), None)
        answer = counted(listing.all, census)
        assert (answer.files, answer.victims, answer.documents, answer.units) == ({}, {}, set(), set())

    def test_without_roots_age_and_name_decide_alone(
        self, engine: Engine, store: ObjectStores, world: CensusWorld
    ) -> None:
        listing = engine.list([KeyRange(world.table.location)], ObjectRanges())
        answer = counted(
            listing.all, engine.census(listing, [ServerRoots([], IcebergFormat(store).expand)], world.sort)
        )
        assert ObjectClass.NEEDED not in answer.files
        assert sum(answer.classes.values(), Tally()) == listing.all

    def test_the_newest_time_is_told(self, engine: Engine, store: ObjectStores, world: CensusWorld) -> None:
        far = YOUNG_MS + 10_000_000_000_000
        world.stray("data/future.parquet", far)
        listing = engine.list([KeyRange(world.table.location)], ObjectRanges())
        assert engine.census(listing, [ServerRoots([], IcebergFormat(store).expand)], world.sort).newest_ms == far

    # ---- what counts as needed

    def test_what_two_tables_need_is_needed(self, engine: Engine, store: ObjectStores, world: CensusWorld) -> None:
        shared = world.stray("data/shared.parquet", of=ObjectClass.NEEDED)
        both = [Root(File(FileKind.DATA, shared), needed) for needed in (False, True, False)]
        assert world.count(engine, store, both).classes == world.expected()

    def test_another_spelling_is_the_same_object(self, engine: Engine, store: ObjectStores, world: CensusWorld) -> None:
        named = []
        for number, spelling in enumerate(("file:{}", "{}", "file://localhost{}", "FILE://{}")):
            key = world.stray(f"data/spelled-{number}.parquet", of=ObjectClass.NEEDED)
            named.append(spelling.format(key.removeprefix("file://").replace("/data/", "/data//")))
        answer = world.count(engine, store, [Root(File(FileKind.DATA, each), True) for each in named])
        assert answer.classes == world.expected()
        assert answer.near_misses == ()

    def test_what_differs_by_scheme_or_encoding_alone_is_a_near_miss(
        self, engine: Engine, store: ObjectStores, world: CensusWorld
    ) -> None:
        folder = world.table.location.removeprefix("file://")
        pairs = {
            "data/a.parquet": f"hdfs://nn{folder}/data/a.parquet",
            "data/b.parquet": f"s3://bucket{folder}/data/b.parquet",
            "data/c c.parquet": f"file://{folder}/data/c%20c.parquet",
            "data/d%20d.parquet": f"file://{folder}/data/d d.parquet",
        }
        keys = [world.stray(listed, of=ObjectClass.NEAR_MISS) for listed in pairs]
        young = world.stray("data/young e.parquet", YOUNG_MS, ObjectClass.YOUNG)
        named = [*pairs.values(), young.replace(" ", "%20")]
        more = [Root(File(FileKind.DATA, each), needed=place % 2 == 0) for place, each in enumerate(named)]
        answer = world.count(engine, store, more)
        assert answer.classes == world.expected()
        assert answer.near_misses == tuple(zip(keys, pairs.values(), strict=True))
        assert not answer.victims

    def test_only_a_few_near_misses_are_shown(self, engine: Engine, store: ObjectStores, world: CensusWorld) -> None:
        keys = [world.stray(f"data/{n:03d}.parquet", of=ObjectClass.NEAR_MISS) for n in range(50)]
        more = [Root(File(FileKind.DATA, key.replace("file://", "s3://b")), True) for key in keys]
        answer = world.count(engine, store, more)
        assert answer.files[ObjectClass.NEAR_MISS] == 50
        assert answer.near_misses == tuple((key, key.replace("file://", "s3://b")) for key in keys[:20])

    # ---- what stops it

    def test_a_unit_that_cannot_be_read_stops_the_census(
        self, engine: Engine, store: ObjectStores, world: CensusWorld
    ) -> None:
        world.every_stray()
        unit = _a_manifest(world.table)
        Path(unit.removeprefix("file://")).write_bytes(b"Obj\x01")
        with pytest.raises(UnreadableMetadata) as stopped:
            world.count(engine, store)
        assert unit in stopped.value.message

    def test_a_piece_that_cannot_be_listed_stops_the_listing(self, engine: Engine, world: CensusWorld) -> None:
        pieces = [KeyRange(world.table.location), KeyRange(f"{world.table.location}/{'x' * 300}")]
        with pytest.raises(StoreError, match="xxx"):
            engine.list(pieces, ObjectRanges())

    def test_an_object_that_is_listed_twice_stops_the_census(
        self, engine: Engine, store: ObjectStores, world: CensusWorld
    ) -> None:
        lost = world.stray("data/lost.parquet")
        listing = engine.list([KeyRange(world.table.location), KeyRange(lost.rpartition("/")[0])], ObjectRanges())
        with pytest.raises(StoreError, match="twice"):
            engine.census(listing, world.needs(store), world.sort)

    def test_units_of_one_name_on_two_servers_are_two(
        self, engine: Engine, store: ObjectStores, world: CensusWorld
    ) -> None:
        """One of them has empty copies of everything: what the other one's name stays needed, in whatever order."""
        world.every_stray()
        (here,) = world.needs(store)
        there = replace(here, expand=NamingNothing(here.expand), server="there")
        source = ObjectRanges()
        for needs in ([here, there], [there, here]):
            listing = engine.list(source.split(world.table.location, 4), source)
            assert counted(listing.all, engine.census(listing, needs, world.sort)).classes == world.expected()

    # ---- when it looks

    def test_a_listing_is_of_its_own_time(self, engine: Engine, store: ObjectStores, world: CensusWorld) -> None:
        """What came after the listing is not in it, what went is: nothing is listed again behind the roots' back."""
        gone, source = world.stray("data/gone.parquet"), ObjectRanges()
        listing = engine.list(source.split(world.table.location, 4), source)
        remove(gone.removeprefix("file://"))
        late = world.stray("data/late.parquet")
        answer = counted(listing.all, engine.census(listing, world.needs(store), world.sort))
        assert gone in answer.victims
        assert late not in answer.victims
        assert late in world.count(engine, store).victims, "the next listing looks again"

    def test_every_census_looks_for_itself(self, engine: Engine, store: ObjectStores, world: CensusWorld) -> None:
        """A census that is still open must not answer for what has changed since."""
        world.every_stray()
        source, expand = ObjectRanges(), IcebergFormat(store).expand
        every = list(world.roots(store))
        listing = engine.list(source.split(world.table.location, 4), source)
        expected = world.expected()
        earlier = engine.census(listing, [ServerRoots(every, expand)], world.sort)
        remove(_a_manifest(world.table).removeprefix("file://"))
        with pytest.raises(UnreadableMetadata):
            engine.census(listing, [ServerRoots(every, expand)], world.sort)
        assert counted(listing.all, earlier).classes == expected, "what was found before stays as it was found"

    def test_a_sort_that_changes_is_asked_again(self, engine: Engine, store: ObjectStores, world: CensusWorld) -> None:
        world.stray("data/young.parquet", YOUNG_MS)
        source, expand = ObjectRanges(), IcebergFormat(store).expand
        listing = engine.list(source.split(world.table.location, 4), source)
        later = replace(world.sort, cutoff_ms=YOUNG_MS + 1)
        answers = [
            counted(
                listing.all, engine.census(listing, [ServerRoots(list(world.roots(store)), expand)], sort)
            ).files.get(ObjectClass.VICTIM)
            for sort in (world.sort, later)
        ]
        assert answers == [None, 1]


def _a_manifest(table: SmallTable) -> str:
    return min(path for path, made in table.made.items() if made.kind is FileKind.MANIFEST)
