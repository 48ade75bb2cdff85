"""What every format must do: subclass the contract, say how a table of it is made, and pytest runs it.

The tables are real files, because engines open them in other processes. Every promise of `ports.formats` and
`ports.kits` that a use case relies on is a test here, and runs through the very use cases.
"""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

import pytest

from firnline.caches.disk import DiskCache
from firnline.caches.opening import OpenedCache
from firnline.caches.seal import Seal
from firnline.errors import FirnlineError, NoSuchTable, RefusedForSafety, UnreadableMetadata, UnsupportedFormat
from firnline.formats.registry import kit_at, kit_named, kit_of_document
from firnline.local.engine import LocalEngine
from firnline.model.files import FileKind
from firnline.model.locations import identity
from firnline.model.removals import Removal
from firnline.plans.plan import share_removed
from firnline.ports.catalogs import TableName
from firnline.ports.expanding import ROW_COLUMNS
from firnline.ports.formats import State, TableFormat
from firnline.ports.kits import Kit
from firnline.ports.stores import shared
from firnline.stores.objects import ObjectStores
from firnline.testing.counting import Counting, Divided
from firnline.testing.damage import Spoil, cut_in_half, empty, remove, replace_with_text
from firnline.testing.dated import Clock
from firnline.testing.faults import CountingFault, Died, Dying, When
from firnline.testing.folder_process import LEASE, FolderProcess
from firnline.testing.folders import quick
from firnline.testing.specimens.tables import (
    EVERYTHING_OLD,
    HOUR_MS,
    Specimen,
    comes_back,
    committed,
    expire,
    loaded,
    local_path,
    reached,
    released,
    roots_of,
    snapshots_of,
    undo,
    units_of,
)

SPOILED: dict[str, Spoil] = {"missing": remove, "empty": empty, "cut": cut_in_half, "text": replace_with_text}

Make = Callable[[Path], Specimen]


class FormatContract:
    """The contract of Kit and TableFormat. A subclass names the kit and gives the fixture `make`.

    `make` makes the same table anew in an empty folder.
    """

    kit_name: ClassVar[str]
    every: ClassVar[int] = 1
    """Of the units that can be damaged, and the places where a run can be cut, every n-th is tried."""
    may_be_gone: ClassVar[frozenset[FileKind]] = frozenset()
    """Units that writers of the format remove while a snapshot names them: readers of the snapshot do without."""

    @pytest.fixture
    def make(self) -> Make:
        raise NotImplementedError

    @pytest.fixture
    def quick_folder(self, tmp_path: Path) -> Iterator[Path]:
        with quick(tmp_path) as folder:
            yield folder

    @pytest.fixture
    def specimen(self, make: Make, quick_folder: Path) -> Specimen:
        return make(quick_folder / "made")

    @pytest.fixture
    def kit(self) -> Kit:
        return kit_named(self.kit_name)

    @pytest.fixture
    def table_format(self, kit: Kit) -> TableFormat:
        return kit.format(ObjectStores())

    @pytest.fixture
    def state(self, kit: Kit, table_format: TableFormat, specimen: Specimen) -> State:
        return loaded(kit, table_format, specimen)

    # ---- the kit

    def test_a_table_is_found_by_its_folder(self, kit: Kit, specimen: Specimen, quick_folder: Path) -> None:
        store = ObjectStores()
        assert kit_at(store, specimen.location) is kit
        assert kit.has_table(store, specimen.location)
        assert not kit.has_table(store, str(quick_folder / "nothing"))
        with pytest.raises(NoSuchTable):
            kit.folder_tables(store).locate(TableName.at(str(quick_folder / "nothing")))

    def test_metadata_is_known_by_its_name(
        self, kit: Kit, table_format: TableFormat, specimen: Specimen, state: State
    ) -> None:
        documents = [each for each in table_format.metadata_files(state) if kit_of_document(each) is kit]
        assert documents
        for each in documents:
            assert identity(kit.table_folder(each)) == identity(specimen.location)
            found = table_format.table_of(each)
            assert found is not None
            assert found.uuid == state.uuid

    # ---- reading

    def test_a_state_names_nothing_that_it_does_not_have(self, table_format: TableFormat, state: State) -> None:
        assert state.format == table_format.name == self.kit_name
        assert state.current in state.graph
        assert {ref.snapshot for ref in state.refs.values()} <= state.graph.by_id.keys()
        assert {str(each["snapshot-id"]) for each in table_format.snapshot_objects(state)} == state.graph.by_id.keys()
        assert state.graph.by_id.keys() <= {owner for owner, _ in table_format.roots(state)}

    def test_all_that_is_needed_is_reached(self, table_format: TableFormat, specimen: Specimen, state: State) -> None:
        found = reached(LocalEngine(), table_format, state, frozenset())["kept"]
        metadata = {identity(each) for each in table_format.metadata_files(state)}
        assert {identity(path) for path in specimen.needed()} <= {name for name, _, _ in found} | metadata

    def test_no_units_name_nothing(self, table_format: TableFormat) -> None:
        """Who leaves out units that are known asks for none in the end."""
        found = table_format.expand([])
        assert (len(found.rows), len(found.of)) == (0, 0)
        assert found.rows.schema.names[: len(ROW_COLUMNS)] == list(ROW_COLUMNS)

    @pytest.mark.parametrize("how", SPOILED)
    def test_a_damaged_unit_is_named(
        self, make: Make, kit: Kit, table_format: TableFormat, quick_folder: Path, how: str
    ) -> None:
        count = len(units_of(table_format, loaded(kit, table_format, make(quick_folder / "counted"))))
        for number in range(0, count, self.every):
            specimen = make(quick_folder / f"{how}-{number}")
            unit = units_of(table_format, loaded(kit, table_format, specimen))[number]
            if how == "missing" and unit.kind in self.may_be_gone:
                continue
            SPOILED[how](local_path(unit.key))
            with pytest.raises((UnreadableMetadata, UnsupportedFormat)) as stopped:
                FolderProcess().plan(specimen.location, **EVERYTHING_OLD)
            assert Path(unit.key).name in stopped.value.message
            assert stopped.value.hint

    @pytest.mark.parametrize("how", ["empty", "cut", "text"])
    def test_damaged_metadata_is_named(self, make: Make, quick_folder: Path, how: str) -> None:
        for number in range(len(make(quick_folder / "counted").vital)):
            specimen = make(quick_folder / f"{how}-{number}")
            path = specimen.vital[number]
            SPOILED[how](path)
            with pytest.raises((UnreadableMetadata, UnsupportedFormat)) as stopped:
                FolderProcess().plan(specimen.location, **EVERYTHING_OLD)
            assert Path(path).name in stopped.value.message

    def test_what_travels_to_executors_pickles(self, kit: Kit, table_format: TableFormat, state: State) -> None:
        units = units_of(table_format, state)
        expand, entries = table_format.expand, kit.inspect(ObjectStores()).entries(state)
        sent, also = pickle.loads(pickle.dumps((expand, entries)))
        first = [unit for unit in units if unit.kind is units[0].kind]
        assert sent(first).rows == expand(first).rows
        assert also.schema == entries.schema
        assert pickle.loads(pickle.dumps(table_format)).name == table_format.name

    def test_what_travels_to_executors_keeps_to_its_part_of_the_pace(self, kit: Kit) -> None:
        expand = shared(kit.format(Divided(ObjectStores())).expand, 4)
        assert pickle.loads(pickle.dumps(expand)).store.parts == 4

    # ---- engines

    @pytest.mark.spark
    @pytest.mark.xdist_group("spark")
    def test_both_engines_agree(self, table_format: TableFormat, state: State) -> None:
        from firnline.spark.engine import SparkEngine
        from firnline.spark.session import session

        gone = released(table_format, state)
        here = reached(LocalEngine(), table_format, state, gone)
        assert here["victims"]
        assert here == reached(SparkEngine(session()), table_format, state, gone)

    def test_what_is_remembered_is_what_opening_tells(
        self, table_format: TableFormat, state: State, quick_folder: Path
    ) -> None:
        """And with an unchanged table no unit is opened that was opened before."""
        gone = released(table_format, state)
        expected = reached(LocalEngine(), table_format, state, gone)
        memory = OpenedCache("", DiskCache(str(quick_folder / "cache")), Seal(b"of this test"))
        opened = []
        for _ in range(2):
            counting = Counting(ObjectStores())
            counted = kit_named(self.kit_name).format(counting)
            expand = memory.of(counting)(counted, state, HOUR_MS)
            assert reached(LocalEngine(), counted, state, gone, expand) == expected
            keys = {identity(each.key) for each in units_of(table_format, state)}
            opened.append({key for verb, key in counting.calls() if verb == "get" and identity(key) in keys})
        assert opened[0]
        assert not opened[1]

    # ---- writing

    def test_what_expired_comes_back(
        self, kit: Kit, table_format: TableFormat, specimen: Specimen, state: State
    ) -> None:
        process = FolderProcess()
        run = committed(process, specimen)
        assert run.removal is not None
        assert Removal.from_json(json.loads(json.dumps(run.removal.to_json()))) == run.removal
        after = loaded(kit, table_format, specimen)
        assert after.graph.by_id.keys() == state.graph.by_id.keys() - set(run.removal.ids)
        assert after.refs.keys() == state.refs.keys() - run.removal.refs.keys()
        revived = table_format.with_removal(after, run.removal)
        assert roots_of(table_format, revived) >= roots_of(table_format, state)
        if not comes_back(state):
            with pytest.raises(RefusedForSafety):
                process.undo(str(run.id))
            return
        process.undo(str(run.id))
        back = loaded(kit, table_format, specimen)
        assert (back.graph.by_id.keys(), back.current) == (state.graph.by_id.keys(), state.current)
        assert back.refs == state.refs
        assert roots_of(table_format, back) == roots_of(table_format, state)

    def test_part_of_a_removal_brings_back_that_part(
        self, kit: Kit, table_format: TableFormat, specimen: Specimen, state: State
    ) -> None:
        removal = committed(FolderProcess(), specimen).removal or Removal()
        after = loaded(kit, table_format, specimen)
        assert removal.ids
        for each in removal.ids:
            part = table_format.part_of(removal, {each})
            assert part.ids == (each,)
            assert not part.refs
            files = {file.key for owner, file in table_format.roots(state) if owner == each}
            assert files <= {file.key for _, file in table_format.roots(table_format.with_removal(after, part))}

    def test_fields_that_nobody_knows_survive(self, specimen: Specimen, state: State) -> None:
        specimen.mark()
        assert specimen.marked()
        process = FolderProcess()
        run = committed(process, specimen)
        assert specimen.marked()
        if comes_back(state):
            process.undo(str(run.id))
            assert specimen.marked()

    def test_a_purge_takes_what_only_the_expired_needed(self, specimen: Specimen) -> None:
        before, clock = specimen.needed(), Clock()
        process = FolderProcess(clock=clock)
        view = process.plan(specimen.location, **EVERYTHING_OLD)
        planned = {local_path(each["path"]) for each in view.files()}
        run = committed(process, specimen)
        kept = specimen.needed()
        assert planned
        assert planned <= before - kept
        clock.advance(2 * HOUR_MS)
        process.purge(str(run.id))
        assert not [path for path in planned if os.path.exists(path)]
        assert all(os.path.exists(path) for path in kept)
        assert specimen.needed() == kept
        assert process.check(specimen.location).sound

    def test_a_graph_has_every_snapshot_before_and_what_its_run_leaves_after(self, specimen: Specimen) -> None:
        process = FolderProcess(clock=Clock())
        view = process.plan(specimen.location, **EVERYTHING_OLD)
        graph, kept = process.graph(specimen.location, **EVERYTHING_OLD), {each.id for each in view.plan.keep}
        assert (graph.before, graph.after) == (view.graph.before, view.graph.after)
        assert {each.id for each in graph.before} == kept | {each.id for each in view.plan.expire}
        assert {each.id for each in graph.after} == kept
        named = {label.name for each in graph.before for label in each.labels if label.kind in ("branch", "tag")}
        assert named == set(process.places.source(specimen.location).load().refs)
        left = {each.id for each in graph.after}
        assert all(each.parent is None or each.parent in left for each in graph.after)

    def test_a_bounded_run_takes_some_of_it_and_leaves_all_else_whole(self, specimen: Specimen) -> None:
        process = FolderProcess(clock=Clock())
        every = process.plan(specimen.location, **EVERYTHING_OLD).plan
        assert every.kept is not None
        bound = share_removed(every.kept.all, every.victims.all)[1] * 0.7
        view = process.plan(specimen.location, at_most=bound, **EVERYTHING_OLD)
        plan, gone = view.plan, {each.id for each in view.plan.expire}
        assert gone < {each.id for each in every.expire}
        known = {each.id for each in every.keep} | {each.id for each in every.expire}
        assert {each.id for each in plan.keep} == known - gone
        assert plan.kept is None or share_removed(plan.kept.all, plan.victims.all)[1] <= bound
        process.expire(specimen.location, at_most=bound, grace="1h", **EVERYTHING_OLD)
        for _ in range(2):  # a format may have a time to undo before its commit, too
            process.clock.advance(2 * HOUR_MS)
            process.resume(specimen.location)
        assert all(os.path.exists(path) for path in specimen.needed())
        assert process.check(specimen.location).sound
        assert {each.id for each in process.plan(specimen.location, **EVERYTHING_OLD).plan.expire} >= {
            each.id for each in every.expire
        } - gone - {each.id for each in plan.keep if each.refs}

    @pytest.mark.parametrize("when", ["before", "after"])
    def test_a_run_is_cut_at_every_write(self, make: Make, quick_folder: Path, when: When) -> None:
        counting, uncut = CountingFault(), make(quick_folder / "uncut")
        expire(uncut, Clock(), counting)
        # A death after a write is one before the next: where not every write is tried, these lie between those.
        first = 1 if when == "before" else 1 + (self.every - 1) // 2
        for at in range(first, counting.effects + 1, self.every):
            cut, clock, fault = make(quick_folder / f"{at}"), Clock(), Dying(at, when=when)
            before = cut.needed()
            with suppress(Died, FirnlineError):
                expire(cut, clock, fault)
            assert fault.dead
            assert all(os.path.exists(path) for path in cut.needed()), at
            clock.advance(LEASE.length_ms + LEASE.margin_ms + 1_000)
            process = FolderProcess(clock=clock)
            process.resume(cut.location)
            expire(cut, clock, None)  # it may have died before it was a run at all
            assert snapshots_of(cut) == snapshots_of(uncut), at
            assert all(os.path.exists(path) for path in cut.needed()), at
            assert not [path for path in before - cut.needed() if os.path.isfile(path)], at
            assert process.check(cut.location).sound

    def test_an_undo_is_cut_at_every_write(self, make: Make, quick_folder: Path) -> None:
        counting, whole = CountingFault(), make(quick_folder / "whole")
        before = snapshots_of(whole)
        undo(whole, Clock(), counting)
        assert snapshots_of(whole) == before
        for at in range(1, counting.effects + 1, self.every):
            cut, clock, fault = make(quick_folder / f"undo-{at}"), Clock(), Dying(at)
            with suppress(Died, FirnlineError):
                undo(cut, clock, fault)
            assert fault.dead
            clock.advance(LEASE.length_ms + LEASE.margin_ms + 1_000)
            process = FolderProcess(clock=clock)
            for each in process.runs(cut.location):
                if not each.run.is_finished:
                    process.undo(str(each.run.id))
            assert snapshots_of(cut) == before, at
            assert process.check(cut.location).sound
