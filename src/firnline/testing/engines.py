"""What every engine must do: subclass the contract, say which engine, and pytest runs it.

The tables are real files, because an engine may open them in other processes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from firnline.errors import StoreError, UnreadableMetadata, UnsupportedFormat
from firnline.formats.iceberg.table import IcebergFormat
from firnline.model.files import FileKind, Tally
from firnline.ops.runs.plan import roots
from firnline.ports.engines import ELSEWHERE, NEAR_MISS, OUTSIDE, Engine, Territory
from firnline.stores.objects import ObjectStores
from firnline.testing.counting import CountingLog
from firnline.testing.damage import SPOILED, cut_between_blocks, remove
from firnline.testing.manifests import AvroLayout, Entry, Item, Status, WrittenManifest
from firnline.testing.surveys import expected, files_of, found, needed_by, survey
from firnline.testing.tables import QuickFiles, SmallTable

Small = Callable[[int], SmallTable]

UNREADABLE = [
    *((how, kind, True) for how in SPOILED for kind in (FileKind.MANIFEST_LIST, FileKind.MANIFEST)),
    *(("missing", kind, False) for kind in (FileKind.MANIFEST_LIST, FileKind.MANIFEST)),
]
"""How a unit is spoiled, which one, and whether its snapshot expires: one that expires is no less needed to judge."""


class EngineContract:
    """The contract of Engine. A subclass gives the fixture `engine`; its executors must see local files."""

    @pytest.fixture
    def engine(self) -> Engine:
        raise NotImplementedError

    @pytest.fixture
    def store(self) -> ObjectStores:
        return ObjectStores()

    @pytest.fixture
    def small(self, tmp_path: Path) -> Small:
        """Makes an empty table of a version; manifests have several blocks, so that one can be cut between two."""
        return lambda version: SmallTable(QuickFiles(), f"file://{tmp_path}/t", AvroLayout(version, block_bytes=1))

    def test_kept_files_come_by_kind(self, engine: Engine, store: ObjectStores, small: Small) -> None:
        """A plan remembers the units that it walked: a few, among millions of files."""
        table, expired = a_long_life(small(3))
        table_format = IcebergFormat(store)
        state = table_format.load("table", table.publish())
        gone = {str(each) for each in expired}
        answer = engine.survey(roots(table_format, state, gone), table_format.expand, Territory(None))
        units = files_of(answer.kept_batches((FileKind.MANIFEST_LIST, FileKind.MANIFEST)))
        every = files_of(answer.kept_batches())
        assert files_of(answer.kept_batches(())) == {}
        answer.close()
        assert units == {key: said for key, said in every.items() if said[0] in ("manifest", "manifest-list")}
        assert 0 < len(units) < len(every)

    @pytest.mark.parametrize("version", [1, 2, 3])
    def test_victims_are_what_only_expired_snapshots_need(
        self, engine: Engine, store: ObjectStores, small: Small, version: int
    ) -> None:
        table, expired = a_long_life(small(version))
        answer = survey(engine, table, expired, store, outside=True)
        assert answer == expected(table, expired)
        assert answer.victims
        assert answer.kept

    def test_each_unit_is_opened_once(self, engine: Engine, store: ObjectStores, small: Small, tmp_path: Path) -> None:
        table, expired = a_long_life(small(3))
        counting = CountingLog(store, str(tmp_path / "calls.log"))
        answer = survey(engine, table, expired, counting)
        calls = counting.calls()
        asked = {("get", table.documents[-1]), *(("get", path) for path in _units(table))}
        assert calls == Counter(dict.fromkeys(asked, 1))
        assert answer.units_opened == len(_units(table))

    def test_where_nothing_expires_nothing_goes(self, engine: Engine, store: ObjectStores, small: Small) -> None:
        table, _ = a_long_life(small(2))
        answer = survey(engine, table, (), store)
        assert not answer.victims
        assert answer.kept.keys() == table.made.keys()

    def test_where_everything_expires_everything_goes(self, engine: Engine, store: ObjectStores, small: Small) -> None:
        table, _ = a_long_life(small(2))
        answer = survey(engine, table, table.changes, store, outside=True)
        assert answer.victims.keys() == table.made.keys()
        assert not answer.kept

    def test_no_roots_give_an_empty_answer(self, engine: Engine, store: ObjectStores) -> None:
        nothing = found(engine.survey(iter(()), IcebergFormat(store).expand, Territory(None)))
        assert (nothing.victims, nothing.kept, nothing.spared, nothing.units_opened) == ({}, {}, {}, 0)
        assert (nothing.victim_totals.all, nothing.kept_totals.all) == (Tally(), Tally())

    # ---- what cannot be read stops everything

    @pytest.mark.parametrize(("how", "kind", "expires"), UNREADABLE)
    def test_a_unit_that_cannot_be_read_is_named(
        self, engine: Engine, store: ObjectStores, small: Small, how: str, kind: FileKind, expires: bool
    ) -> None:
        table = small(2)
        first, second = table.append(3), table.overwrite(table.live())
        unit = _unit_of(table, first if expires else second, kind)
        SPOILED[how](unit.removeprefix("file://"))
        with pytest.raises(UnreadableMetadata) as stopped:
            survey(engine, table, {first}, store)
        assert unit in stopped.value.message
        assert kind.value in stopped.value.message
        assert stopped.value.hint

    def test_a_manifest_cut_between_two_blocks_is_not_whole(
        self, engine: Engine, store: ObjectStores, small: Small
    ) -> None:
        table = small(2)
        first, second = table.append(3), table.append(3)
        manifest = _unit_of(table, second, FileKind.MANIFEST)
        cut_between_blocks(manifest.removeprefix("file://"))
        with pytest.raises(UnreadableMetadata) as stopped:
            survey(engine, table, {first}, store)
        assert manifest in stopped.value.message

    def test_a_file_of_an_unknown_status_is_refused(self, engine: Engine, store: ObjectStores, small: Small) -> None:
        table = small(2)
        strange = Entry(3, Item("file:///x", 1), 1)  # type: ignore[arg-type]
        _assert_refused(engine, store, table, strange, "status 3")

    def test_a_file_of_unknown_content_is_refused(self, engine: Engine, store: ObjectStores, small: Small) -> None:
        table = small(2)
        strange = Entry(Status.ADDED, Item("file:///x", 1, 7), 1)  # type: ignore[arg-type]
        _assert_refused(engine, store, table, strange, "content 7")

    def test_a_store_that_fails_stops_everything_with_its_own_error(
        self, engine: Engine, store: ObjectStores, small: Small
    ) -> None:
        table = small(2)
        table.append()
        _relist(table, table.append(), lambda manifest: replace(manifest, path="tape://drive/m.avro"))
        with pytest.raises(StoreError, match=r"tape://drive/m\.avro"):
            survey(engine, table, list(table.changes)[:1], store)

    def test_an_engine_works_on_after_a_survey_that_failed(
        self, engine: Engine, store: ObjectStores, small: Small
    ) -> None:
        table = small(2)
        first, _ = table.append(), table.overwrite(table.live())
        whole = store.get(table.changes[first].manifest_list or "")
        store.put(table.changes[first].manifest_list or "", b"")
        with pytest.raises(UnreadableMetadata):
            survey(engine, table, {first}, store)
        store.put(table.changes[first].manifest_list or "", whole)
        assert survey(engine, table, {first}, store) == expected(table, {first})

    def test_every_survey_looks_for_itself(self, engine: Engine, store: ObjectStores, small: Small) -> None:
        """A survey that is still open must not answer for what has changed since."""
        table = small(2)
        first, _ = table.append(), table.overwrite(table.live())
        table_format = IcebergFormat(store)
        state = table_format.load("table", table.publish())
        territory = Territory(state.owned)
        earlier = engine.survey(roots(table_format, state, {str(first)}), table_format.expand, territory)
        remove(_unit_of(table, first, FileKind.MANIFEST).removeprefix("file://"))
        with pytest.raises(UnreadableMetadata):
            engine.survey(roots(table_format, state, {str(first)}), table_format.expand, territory)
        assert found(earlier) == expected(table, {first}), "what was found before stays as it was found"

    # ---- what stays although nothing needs it

    def test_victims_outside_the_table_are_spared(self, engine: Engine, store: ObjectStores, small: Small) -> None:
        table = small(2)
        inside, outside = table.append(2), table.append(3, outside=True)
        table.overwrite(table.live())
        elsewhere = {path for path in table.victims({inside, outside}) if not path.startswith(table.location + "/")}
        answer = survey(engine, table, {inside, outside}, store)
        assert len(elsewhere) == 3
        assert answer.victims.keys() == table.victims({inside, outside}) - elsewhere
        assert answer.spared == {OUTSIDE: Tally(3, sum(table.made[path].size for path in elsewhere))}

    def test_a_folder_that_only_starts_alike_is_outside(
        self, engine: Engine, store: ObjectStores, small: Small
    ) -> None:
        table = small(2)
        gone = table.register([Item(f"{table.location}2/data/x", 5), Item(f"{table.location}/data/x", 7)])
        table.overwrite(table.live())
        answer = survey(engine, table, {gone}, store)
        assert f"{table.location}/data/x" in answer.victims
        assert answer.spared == {OUTSIDE: Tally(1, 5)}

    def test_folders_that_properties_name_belong_to_the_table(
        self, engine: Engine, store: ObjectStores, small: Small
    ) -> None:
        table = small(2)
        table.properties["write.data.path"] = f"{table.location}-elsewhere"
        gone = table.append(outside=True)
        table.overwrite(table.live())
        answer = survey(engine, table, {gone}, store)
        assert answer.victims.keys() == table.victims({gone})
        assert not answer.spared

    def test_a_folder_of_another_table_inside_is_not_the_tables_own(
        self, engine: Engine, store: ObjectStores, small: Small
    ) -> None:
        table = small(2)
        inner, alike = f"{table.location}/inner", f"{table.location}/inner2"
        gone = table.register([Item(f"{inner}/data/x", 5), Item(f"{alike}/data/x", 7)])
        table.overwrite(table.live())
        for outside in (False, True):
            answer = survey(engine, table, {gone}, store, outside=outside, holes=(inner,))
            assert f"{alike}/data/x" in answer.victims
            assert answer.spared == {OUTSIDE: Tally(1, 5)}

    @pytest.mark.parametrize("spelling", ["file:{}", "FILE://localhost{}", "s3://bucket{}"])
    def test_what_another_table_needs_is_spared_however_it_spells_it(
        self, engine: Engine, store: ObjectStores, small: Small, tmp_path: Path, spelling: str
    ) -> None:
        table, other = small(2), SmallTable(QuickFiles(), f"file://{tmp_path}/other", AvroLayout(2))
        path = f"{tmp_path}/t/data/imported"
        gone = table.register([Item(f"file://{path}", 5), Item(f"file://{path}2", 7)])
        table.overwrite(table.live())
        other.register([Item(spelling.format(path), 5), Item(f"file://{tmp_path}/other/data/own", 9)])
        answer = survey(engine, table, {gone}, store, elsewhere=[needed_by(other, store)])
        assert answer.victims.keys() == table.victims({gone}) - {f"file://{path}"}
        assert answer.spared == {ELSEWHERE: Tally(1, 5)}
        assert not any("/other/" in kept for kept in answer.kept), "what only the other table has does not count here"

    def test_what_another_table_needs_must_be_readable(
        self, engine: Engine, store: ObjectStores, small: Small, tmp_path: Path
    ) -> None:
        table, other = small(2), SmallTable(QuickFiles(), f"file://{tmp_path}/other", AvroLayout(2))
        gone = table.append(2)
        table.overwrite(table.live())
        other.append(1)
        asked = needed_by(other, store)
        (unit,) = (root.file.key for root in asked.roots)
        Path(unit.removeprefix("file://")).unlink()
        with pytest.raises(UnreadableMetadata, match=re.escape(unit)):
            survey(engine, table, {gone}, store, elsewhere=[asked])

    @pytest.mark.parametrize(
        ("needed", "unneeded"),
        [("hdfs:///t/x", "hdfs://nn/t/x"), ("hdfs://nn/t/x", "hdfs:///t/x"), ("file:///t/x", "s3://b/t/x")],
    )
    def test_the_path_of_a_needed_file_elsewhere_is_a_near_miss(
        self, engine: Engine, store: ObjectStores, small: Small, needed: str, unneeded: str
    ) -> None:
        table = small(2)
        gone = table.register([Item(unneeded, 5), Item(unneeded + ".other", 7)])
        table.overwrite(table.live(), 0)
        table.register([Item(needed, 5)])
        answer = survey(engine, table, {gone}, store, outside=True)
        assert answer.spared == {NEAR_MISS: Tally(1, 5)}
        assert unneeded + ".other" in answer.victims

    @pytest.mark.parametrize(
        ("needed", "unneeded"),
        [("s3a://b/t/x", "s3://b/t/x"), ("s3://b/t/x", "s3n://b/t//x"), ("/t/x", "file:/t/x"), ("file:///t/x", "/t/x")],
    )
    def test_two_spellings_are_one_file(
        self, engine: Engine, store: ObjectStores, small: Small, needed: str, unneeded: str
    ) -> None:
        table = small(2)
        gone = table.register([Item(unneeded, 5)])
        table.overwrite(table.live(), 0)
        table.register([Item(needed, 5)])
        answer = survey(engine, table, {gone}, store, outside=True)
        assert {needed, unneeded}.isdisjoint(answer.victims)
        assert len({needed, unneeded} & answer.kept.keys()) == 1
        assert not answer.spared

    # ---- what is shared

    def test_a_puffin_stays_while_any_of_its_vectors_is_live_and_counts_once(
        self, engine: Engine, store: ObjectStores, small: Small
    ) -> None:
        table = small(3)
        table.append(3)
        shared = table.delete_rows(table.live())
        replaced = table.delete_rows(table.live()[:2])
        (old,) = _puffins(table, shared)
        (new,) = _puffins(table, replaced) - {old}
        answer = survey(engine, table, list(table.changes)[:2], store)
        assert {old, new} <= answer.kept.keys()
        sizes = table.made[old].size + table.made[new].size
        assert answer.kept_totals.by_kind[FileKind.DELETION_VECTORS] == Tally(2, sizes)
        table.delete_rows(table.live()[2:])
        after = survey(engine, table, list(table.changes)[:3], store)
        assert after.victim_totals.by_kind[FileKind.DELETION_VECTORS] == Tally(1, table.made[old].size)

    @pytest.mark.parametrize("inline_expires", [True, False])
    def test_a_manifest_named_inline_and_by_a_list_is_one_unit(
        self, engine: Engine, store: ObjectStores, small: Small, inline_expires: bool, tmp_path: Path
    ) -> None:
        table = small(1)
        inline, listed = table.append(2, inline=True), table.append(1)
        (shared,) = table.changes[inline].units
        assert shared in table.changes[listed].units
        counting = CountingLog(store, str(tmp_path / "calls.log"))
        expired = {inline if inline_expires else listed}
        assert survey(engine, table, expired, counting) == expected(table, expired)
        assert counting.calls()["get", shared] == 1

    def test_a_manifest_under_two_spellings_is_opened_once(
        self, engine: Engine, store: ObjectStores, small: Small, tmp_path: Path
    ) -> None:
        table = small(2)
        first, second = table.append(2), table.append(1)
        _relist(table, second, lambda manifest: replace(manifest, path=manifest.path.removeprefix("file://")))
        counting = CountingLog(store, str(tmp_path / "calls.log"))
        answer = survey(engine, table, {first}, counting)
        assert answer.victims.keys() == {table.changes[first].manifest_list}
        assert answer.units_opened == 4
        assert sum(count for (_, key), count in counting.calls().items() if "manifest.avro" in key) == 2

    def test_a_path_that_was_removed_and_added_again_stays(
        self, engine: Engine, store: ObjectStores, small: Small
    ) -> None:
        table = small(2)
        first = table.append(2)
        path = table.live()[0]
        second = table.overwrite([path])
        table.bring_back(path)
        answer = survey(engine, table, {first, second}, store)
        assert path in answer.kept
        assert answer == expected(table, {first, second})

    def test_statistics_stay_while_any_kept_snapshot_has_them(
        self, engine: Engine, store: ObjectStores, small: Small
    ) -> None:
        table = small(2)
        first, second = table.append(), table.append()
        shared, own = table.statistics(first), table.statistics(first, by_partition=True)
        table.statistics(second, shared)
        answer = survey(engine, table, {first}, store)
        assert shared in answer.kept
        assert own in answer.victims
        table.named.append(replace(table.named[0], snapshot=1, path=own, size=table.made[own].size))
        assert own in survey(engine, table, {first}, store).kept, "what an unknown snapshot has stays too"


def a_long_life(table: SmallTable) -> tuple[SmallTable, set[int]]:
    """Returns the table after everything that can happen to one, and snapshots to expire from all over its history."""
    first = table.append(3, inline=table.version == 1)
    second = table.append(2, outside=True)
    if table.version > 1:
        table.delete_rows(table.live()[:3])
        table.delete_rows(table.live()[:1], equality=True)
        table.delete_rows(table.live()[1:2])
    table.branch("experiment", second)
    table.append(1, on="experiment")
    third = table.overwrite(table.live()[:2])
    staged = table.append(1, on=None)
    table.rewrite_manifests()
    mistake = table.append(2)
    table.rollback(third)
    table.bring_back(table.gone()[0])
    table.tag("release", mistake)
    table.statistics(first)
    table.statistics(second, by_partition=True)
    table.overwrite(table.live(), operation="replace")
    return table, {first, second, third, staged}


def _units(table: SmallTable) -> set[str]:
    return {path for change in table.changes.values() for path in change.units}


def _unit_of(table: SmallTable, snapshot: int, kind: FileKind) -> str:
    """Returns a unit that only this snapshot names."""
    others = {path for each in table.changes.values() if each.id != snapshot for path in each.units}
    return min(path for path in table.changes[snapshot].units - others if table.made[path].kind is kind)


def _puffins(table: SmallTable, snapshot: int) -> set[str]:
    return {item.path for item in table.changes[snapshot].live if item.format == "PUFFIN"}


def _relist(table: SmallTable, snapshot: int, change: Callable[[WrittenManifest], WrittenManifest]) -> None:
    """Writes a snapshot's list again, naming changed manifests."""
    path = table.changes[snapshot].manifest_list or ""
    manifests = [change(each) for each in table.changes[snapshot].manifests]
    table.store.put(path, table.layout.manifest_list(manifests, snapshot))


def _assert_refused(engine: Engine, store: ObjectStores, table: SmallTable, strange: Entry, words: str) -> None:
    first, second = table.append(), table.append()
    path = _unit_of(table, second, FileKind.MANIFEST)
    data = table.layout.manifest([strange], deletes=False)
    store.put(path, data)
    _relist(table, second, lambda each: replace(each, length=len(data)) if each.path == path else each)
    with pytest.raises(UnsupportedFormat) as refused:
        survey(engine, table, {first}, store)
    assert words in refused.value.message
    assert path in refused.value.message
