"""What every engine must do with a listing of several tables: subclass the contract beside that of one census."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

import pytest

from firnline.errors import FirnlineError, StoreError, UnreadableMetadata
from firnline.formats.iceberg.table import IcebergFormat
from firnline.formats.sorting import Sorting
from firnline.local.engine import LocalEngine
from firnline.model.files import File, FileKind, Root, Tally
from firnline.model.locations import join, within
from firnline.ports.engines import Engine, Listing, ServerRoots, TableSearch
from firnline.ports.expanding import Expand
from firnline.ports.listings import KeyRange, ObjectClass
from firnline.ports.stores import Read
from firnline.stores.objects import ObjectStores
from firnline.stores.ranges import ObjectRanges
from firnline.testing.censuses import OLD_MS, CensusWorld, Counted, counted
from firnline.testing.counting import CountingLog
from firnline.testing.damage import remove
from firnline.testing.engines import a_long_life
from firnline.testing.lakes.engines import NamingNothing
from firnline.testing.manifests import Content, Item
from firnline.testing.tables import QuickFiles, SmallTable

Answer = Counted | tuple[type[FirnlineError], str]
"""A census as values; an error by its kind and message."""


@dataclass
class CensusLake:
    """Tables in one folder, each with its strays; one may lie in another's folder, and need files of another's.
    `owners` says whose roots those of each table are: two registrations of one table have one owner. Those that are
    `private` count for their own searches alone.
    """

    worlds: list[CensusWorld]
    owners: list[str]
    more: list[Root] = field(default_factory=list)
    private: frozenset[str] = frozenset()

    @property
    def searches(self) -> list[TableSearch]:
        pairs = zip(self.worlds, self.owners, strict=True)
        return [
            TableSearch((world.table.location,), frozenset({owner}), self._sort(world), self.private & {owner})
            for world, owner in pairs
        ]

    def roots(self, store: Read) -> list[Root]:
        """Returns what every table needs, by its owner."""
        pairs = zip(self.worlds, self.owners, strict=True)
        return [*(Root(root.file, True, owner) for world, owner in pairs for root in world.roots(store)), *self.more]

    def needs(self, store: Read) -> list[ServerRoots]:
        return [ServerRoots(self.roots(store), expand_of(store))]

    def outermost(self) -> list[str]:
        places = dict.fromkeys(world.table.location for world in self.worlds)
        return [place for place in places if not any(within(other, place) for other in places)]

    def _sort(self, world: CensusWorld) -> Sorting:
        inner = (each.table.location for each in self.worlds if within(world.table.location, each.table.location))
        return replace(world.sort, others=(join(world.table.location, "neighbour"), *inner))


def listed(engine: Engine, folders: Sequence[str]) -> Listing:
    source = ObjectRanges()
    return engine.list(chain.from_iterable(source.split(folder, 2) for folder in folders), source)


def together(
    engine: Engine, lake: CensusLake, store: Read, searches: Sequence[TableSearch] | None = None
) -> list[Answer]:
    """Returns what the engine says of each table when one census is taken of all."""
    asked = lake.searches if searches is None else searches
    listing = listed(engine, lake.outermost())
    try:
        answers = engine.censuses(listing, asked, lake.needs(store))
        return [_answer(answer) for answer in answers]
    except FirnlineError as problem:
        return [(type(problem), problem.message)] * len(asked)


def alone(lake: CensusLake, store: Read, searches: Sequence[TableSearch] | None = None) -> list[Answer]:
    """Returns what is said of each when a listing and a census are made for every one: by threads, whose answer to one
    is that of every engine.
    """
    asked = lake.searches if searches is None else searches
    hidden = frozenset(owner for search in asked for owner in search.private)
    return [_alone(search, lake, store, hidden - search.private) for search in asked]


def _alone(search: TableSearch, lake: CensusLake, store: Read, hidden: frozenset[str]) -> Answer:
    engine = LocalEngine()
    listing = listed(engine, search.folders)
    every = (root for root in lake.roots(store) if root.owner not in hidden)
    roots = [Root(root.file, root.owner in search.owners) for root in every]
    try:
        return counted(listing.all, engine.census(listing, [ServerRoots(roots, expand_of(store))], search.sort))
    except FirnlineError as problem:
        return type(problem), problem.message


def expand_of(store: Read) -> Expand:
    return IcebergFormat(store).expand


def _answer(answer: object) -> Answer:
    if isinstance(answer, FirnlineError):
        return type(answer), answer.message
    listed = sum(answer.classes.values(), Tally())  # type: ignore[attr-defined]
    return counted(listed, answer)  # type: ignore[arg-type]


class CensusesContract:
    """The contract of Engine.censuses. A subclass gives the fixture `engine`, which sees local files."""

    @pytest.fixture
    def several(self, tmp_path: Path) -> CensusLake:
        """Four tables with strays: one in another's folder, and one beside it whose name begins like that one's."""
        tables = [SmallTable(QuickFiles(), f"file://{tmp_path}/{place}") for place in ("a", "b", "a/inner", "ab")]
        worlds = []
        for number, table in enumerate(tables):
            a_long_life(table) if number == 0 else table.append(2 + number)
            table.publish()
            worlds.append(CensusWorld(table))
        for world in worlds:
            world.every_stray()
        return CensusLake(worlds, ["a", "b", "inner", "ab"])

    def test_each_of_several_searches_answers_as_it_would_alone(self, engine: Engine, several: CensusLake) -> None:
        answers = together(engine, several, ObjectStores())
        assert answers == alone(several, ObjectStores())
        assert all(isinstance(answer, Counted) and answer.victims for answer in answers)
        needed = [answer.files[ObjectClass.NEEDED] for answer in answers if isinstance(answer, Counted)]
        assert len(needed) == len(answers)

    def test_no_search_is_no_answer(self, engine: Engine, several: CensusLake) -> None:
        assert together(engine, several, ObjectStores(), []) == []

    def test_tables_that_are_not_searched_count_as_well(self, engine: Engine, several: CensusLake) -> None:
        lost = several.worlds[1].stray("data/imported.parquet")
        several.more.append(Root(File(FileKind.DATA, lost), True, "a table that nobody searches"))
        searches = several.searches[1:3]
        answers = together(engine, several, ObjectStores(), searches)
        assert answers == alone(several, ObjectStores(), searches)
        assert isinstance(answers[0], Counted)
        assert lost not in answers[0].victims
        assert answers[0].files[ObjectClass.ANOTHER_TABLE]

    def test_what_one_searched_table_needs_of_another_is_no_orphan(self, engine: Engine, several: CensusLake) -> None:
        theirs, own = several.worlds[1].stray("data/theirs.parquet"), several.worlds[0].stray("data/own.parquet")
        several.more += [Root(File(FileKind.DATA, each), True, "a") for each in (theirs, own)]
        a, b, *_ = together(engine, several, ObjectStores())
        assert isinstance(a, Counted)
        assert isinstance(b, Counted)
        assert theirs not in b.victims
        assert own not in a.victims
        assert b.files[ObjectClass.ANOTHER_TABLE] == 1 + 1  # and the stray in a neighbour's folder
        assert [a, b] == alone(several, ObjectStores())[:2]

    def test_what_is_private_to_a_search_counts_for_no_other(self, engine: Engine, several: CensusLake) -> None:
        """The units of one that does not count are none that a purge may take for known."""
        lost, near = (several.worlds[1].stray(f"data/{name}.parquet") for name in ("lost", "near"))
        named = (lost, near.replace("file://", "s3://bucket"))
        several.more += [Root(File(FileKind.DATA, each), True, "a") for each in named]
        several.private = frozenset({"a", "inner"})
        answers = together(engine, several, ObjectStores())
        assert answers == alone(several, ObjectStores())
        a, b, *_ = answers
        assert isinstance(a, Counted)
        assert isinstance(b, Counted)
        assert {lost, near} <= b.victims.keys()
        assert b.units < a.units
        several.private = frozenset({"b"})
        assert together(engine, several, ObjectStores()) == alone(several, ObjectStores())

    def test_two_registrations_of_one_table_need_what_either_does(self, engine: Engine, several: CensusLake) -> None:
        several.worlds.append(several.worlds[0])
        several.owners.append("a")
        answers = together(engine, several, ObjectStores())
        assert answers[0] == answers[-1]
        assert answers == alone(several, ObjectStores())

    def test_an_owner_without_roots_needs_nothing(self, engine: Engine, several: CensusLake) -> None:
        strange = replace(several.searches[-1], owners=frozenset({"nobody"}))
        searches = [*several.searches, strange]
        answers = together(engine, several, ObjectStores(), searches)
        assert answers == alone(several, ObjectStores(), searches)
        assert isinstance(answers[-1], Counted)
        assert ObjectClass.NEEDED not in answers[-1].files

    def test_a_search_of_folders_with_nothing_in_them(
        self, engine: Engine, several: CensusLake, tmp_path: Path
    ) -> None:
        empty = replace(several.searches[0], folders=(f"file://{tmp_path}/none",))
        first, *_ = together(engine, several, ObjectStores(), [empty, *several.searches])
        assert isinstance(first, Counted)
        assert (first.files, first.listed) == ({}, Tally())

    def test_near_misses_are_those_of_each_table(self, engine: Engine, several: CensusLake) -> None:
        for world in several.worlds[:2]:
            key = world.stray("data/near.parquet", of=ObjectClass.NEAR_MISS)
            several.more.append(Root(File(FileKind.DATA, key.replace("file://", "s3://bucket")), True, "b"))
        answers = together(engine, several, ObjectStores())
        assert answers == alone(several, ObjectStores())
        assert [len(answer.near_misses) for answer in answers if isinstance(answer, Counted)] == [1, 1, 0, 0]

    def test_what_a_manifest_names_counts_in_every_folder(self, engine: Engine, several: CensusLake) -> None:
        """By its own name, and by one that differs in the scheme alone."""
        taken, near = (several.worlds[0].stray(f"data/{name}.parquet") for name in ("taken", "near"))
        named = (taken, near.replace("file://", "s3://bucket"))
        several.worlds[1].table.register([Item(each, 3, Content.DATA) for each in named])
        several.worlds[1].table.publish()
        answers = together(engine, several, ObjectStores())
        assert answers == alone(several, ObjectStores())
        assert isinstance(answers[0], Counted)
        assert answers[0].near_misses == ((near, named[1]),)
        assert taken not in answers[0].victims

    def test_a_unit_that_several_searches_need_is_opened_once(
        self, engine: Engine, several: CensusLake, tmp_path: Path
    ) -> None:
        counting = CountingLog(ObjectStores(), str(tmp_path / "calls.log"))
        several.worlds.append(several.worlds[0])
        several.owners.append("another registration")
        roots = several.roots(counting)
        several.worlds, several.owners, several.more, searches = [], [], roots, several.searches
        before = counting.calls()
        listing = listed(engine, [f"file://{tmp_path}"])
        answers = [_answer(each) for each in engine.censuses(listing, searches, several.needs(counting))]
        opened = Counter({key: n for (verb, key), n in (counting.calls() - before).items() if verb == "get"})
        assert opened
        assert set(opened.values()) == {1}
        assert all(isinstance(answer, Counted) and answer.units_opened == len(opened) for answer in answers)

    def test_units_of_one_name_on_two_servers_are_two_for_each_search(
        self, engine: Engine, several: CensusLake
    ) -> None:
        """Every table is on both, and one of them has empty copies of all units."""
        (here,) = several.needs(ObjectStores())
        there = replace(here, expand=NamingNothing(here.expand), server="there")
        for needs in ([here, there], [there, here]):
            listing = listed(engine, several.outermost())
            answers = [_answer(each) for each in engine.censuses(listing, several.searches, needs)]
            assert [_classes(each) for each in answers] == [_classes(each) for each in alone(several, ObjectStores())]

    def test_the_newest_time_is_that_of_each_table(self, engine: Engine, several: CensusLake) -> None:
        far = OLD_MS + 10_000_000_000_000
        several.worlds[1].stray("data/future.parquet", far)
        listing = listed(engine, several.outermost())
        store = ObjectStores()
        found = list(engine.censuses(listing, several.searches, several.needs(store)))
        newest = [None if isinstance(each, FirnlineError) else each.newest_ms for each in found]
        assert newest[1] == far
        assert all(each is not None and each < far for each in (newest[0], *newest[2:]))

    def test_a_unit_that_cannot_be_read_stops_every_search(self, engine: Engine, several: CensusLake) -> None:
        """It may need any file of any table."""
        unit = next(path for path, made in several.worlds[1].table.made.items() if made.kind is FileKind.MANIFEST)
        remove(unit.removeprefix("file://"))
        for kind, said in _told(together(engine, several, ObjectStores())):
            assert kind is UnreadableMetadata
            assert unit in said

    def test_a_private_unit_that_cannot_be_read_stops_its_own_search_alone(
        self, engine: Engine, several: CensusLake
    ) -> None:
        unit = next(path for path, made in several.worlds[1].table.made.items() if made.kind is FileKind.MANIFEST)
        several.private = frozenset({"b"})
        whole = together(engine, several, ObjectStores())
        remove(unit.removeprefix("file://"))
        a, b, *others = together(engine, several, ObjectStores())
        ((kind, said),) = _told([b])
        assert kind is UnreadableMetadata
        assert unit in said
        assert [a, *others] == [whole[0], *whole[2:]]

    def test_an_object_that_is_listed_twice_stops_the_search_of_its_table(
        self, engine: Engine, several: CensusLake
    ) -> None:
        lost, source, store = several.worlds[1].stray("data/lost.parquet"), ObjectRanges(), ObjectStores()
        pieces = [*map(KeyRange, several.outermost()), KeyRange(lost.rpartition("/")[0])]
        listing = engine.list(pieces, source)
        answers = [_answer(each) for each in engine.censuses(listing, several.searches, several.needs(store))]
        kind, said = next(_told(answers[1:2]))
        assert kind is StoreError
        assert "twice" in said
        assert [answers[0], *answers[2:]] == [alone(several, store)[place] for place in (0, 2, 3)]

    def test_a_listing_of_another_engine_is_refused(self, engine: Engine, several: CensusLake) -> None:
        with pytest.raises(TypeError):
            list(engine.censuses(object(), several.searches, []))  # type: ignore[arg-type]


def _classes(answer: Answer) -> object:
    return answer.classes if isinstance(answer, Counted) else answer


def _told(answers: Sequence[Answer]) -> Iterator[tuple[type[FirnlineError], str]]:
    for answer in answers:
        assert isinstance(answer, tuple)
        yield answer
