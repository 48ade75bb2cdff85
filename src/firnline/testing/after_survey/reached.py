"""What every engine must do with what walks reached: subclass the contract, say which engine, and pytest runs it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import closing
from pathlib import Path

import pytest

from firnline.errors import UnreadableMetadata
from firnline.formats.iceberg.table import IcebergFormat
from firnline.model.files import FileKind, Root
from firnline.model.locations import bare_path
from firnline.ports.engines import REACHED_COLUMNS, Engine, ReachedFiles, Territory
from firnline.ports.expanding import Expand
from firnline.stores.objects import ObjectStores
from firnline.stores.real_paths import RealPaths
from firnline.testing.counting import CountingLog
from firnline.testing.damage import remove
from firnline.testing.manifests import Item
from firnline.testing.tables import QuickFiles, SmallTable
from firnline.walking.known import KnownUnits, Unopened


class ReachedContract:
    """The contract of Engine.reached, and of walks that leave known units closed. A subclass gives the fixture
    `engine`; its executors must see local files.
    """

    @pytest.fixture
    def engine(self) -> Engine:
        raise NotImplementedError

    @pytest.fixture
    def table(self, tmp_path: Path) -> SmallTable:
        return SmallTable(QuickFiles(), f"file://{tmp_path}/t")

    def test_what_a_walk_reached_is_found_by_its_path_and_nothing_else_is(
        self, engine: Engine, table: SmallTable
    ) -> None:
        first = table.append(5)
        reached = walked(engine, table, {first})
        live = sorted(table.live())
        wanted = [live[0], f"s3://bucket{bare_path(live[1])}", live[2].replace("/data/", "/date/")]
        assert found(reached, map(bare_path, wanted)) == {(live[0], 1, False), (live[1], 1, False)}
        assert found(reached, [], ["nobody.parquet"]) == set()
        assert found(engine.reached(), [bare_path(live[0])]) == set()

    def test_only_local_files_are_found_by_name_unless_all_are(self, engine: Engine, table: SmallTable) -> None:
        """Links lead to local files alone; names that every folder has would bring all files each time."""
        here, there = f"{table.location}/data/x.parquet", "s3://bucket/t/data/x.parquet"
        first = table.register([Item(here, 5), Item(there, 5)])
        assert found(walked(engine, table, {first}), [], ["x.parquet"]) == {(here, 1, False)}
        everywhere = walked(engine, table, {first}, everywhere=True)
        assert found(everywhere, [], ["x.parquet"]) == {(here, 1, False), (there, 1, False)}
        by_name = walked(engine, table, {first}, by_name=True)
        assert found(by_name, [], ["x.parquet"]) == {(here, 1, True), (there, 1, True)}

    @pytest.mark.parametrize(("spelled", "path"), [("a%20b", "a b"), ("x", "x"), ("caf\u00e9", "cafe\u0301")])
    def test_names_are_compared_as_paths_are(self, engine: Engine, table: SmallTable, spelled: str, path: str) -> None:
        """Also a name that is shorter than a word."""
        key = f"{table.location}/data/{spelled}"
        reached = walked(engine, table, {table.register([Item(key, 5)])})
        last = bare_path(f"{table.location}/data/{path}").rpartition("/")[2]
        assert found(reached, [], [last]) == {(key, 1, False)}

    def test_a_link_is_found_by_what_it_leads_to(self, engine: Engine, table: SmallTable, tmp_path: Path) -> None:
        """And by its own name, since a link may be another one by the time of the question."""
        link = tmp_path / "link.parquet"
        link.symlink_to(tmp_path / "x.parquet")
        reached = engine.reached(real=RealPaths())
        add(reached, engine, table, {table.register([Item(f"file://{link}", 5)])}, 1)
        assert found(reached, [f"{tmp_path}/x.parquet"]) == {(f"file://{link}", 1, False)}
        assert found(reached, [], ["link.parquet"]) == {(f"file://{link}", 1, False)}

    def test_the_first_walk_of_many_is_told(self, engine: Engine, table: SmallTable) -> None:
        """More walks than are kept apart, of which each reaches what those before did."""
        snapshots = [table.append(1)]
        reached, firsts = engine.reached(), dict.fromkeys(table.live(), 1)
        add(reached, engine, table, snapshots[:1], 1)
        for number in range(2, 7):
            snapshots.append(table.append(1))
            firsts |= {path: number for path in table.live() if path not in firsts}
            add(reached, engine, table, snapshots[-1:], number)
        told: dict[str, int] = {}
        for path, number, _ in found(reached, map(bare_path, firsts)):
            told[path] = min(number, told.get(path, number))
        assert told == firsts

    def test_one_file_that_was_reached_by_name_and_otherwise_is_both(self, engine: Engine, table: SmallTable) -> None:
        there = "s3://bucket/t/data/x.parquet"
        first = table.register([Item(there, 5)])
        reached = engine.reached()
        for number in range(1, 7):
            add(reached, engine, table, {first}, number, by_name=number == 6)
        assert found(reached, [], ["x.parquet"]) == {(there, 6, True)}
        assert {by_name for _, _, by_name in found(reached, ["/t/data/x.parquet"])} == {True, False}

    def test_known_units_stay_closed_and_what_they_name_is_not_reached(
        self, engine: Engine, table: SmallTable, tmp_path: Path
    ) -> None:
        first, second = table.append(2), table.append(3)
        old, new = (table.changes[each].units for each in (first, second))
        counting, known = CountingLog(ObjectStores(), str(tmp_path / "calls.log")), KnownUnits()
        known.add(old)
        expand = Unopened(IcebergFormat(counting).expand, known)
        reached = engine.reached()
        add(reached, engine, table, {second}, 1, expand=expand)
        assert {key for _, key in counting.calls()} == new - old
        files = {path for path, _, _ in found(reached, map(bare_path, table.made))}
        assert files == (table.reachable(second) - table.reachable(first)) | new

    def test_a_known_unit_may_be_gone_and_another_may_not(self, engine: Engine, table: SmallTable) -> None:
        first, second = table.append(2), table.append(3)
        shared = table.changes[first].units & table.changes[second].units
        manifest = min(each for each in shared if table.made[each].kind is FileKind.MANIFEST)
        remove(manifest.removeprefix("file://"))
        known = KnownUnits()
        with pytest.raises(UnreadableMetadata, match=manifest):
            add(engine.reached(), engine, table, {second}, 1, expand=_unopened(known))
        known.add([manifest])
        add(engine.reached(), engine, table, {second}, 1, expand=_unopened(known))


def _unopened(known: KnownUnits) -> Expand:
    return Unopened(IcebergFormat(ObjectStores()).expand, known)


def walked(
    engine: Engine, table: SmallTable, snapshots: Collection[int], *, everywhere: bool = False, by_name: bool = False
) -> ReachedFiles:
    """Returns what the snapshots reach, as the first walk."""
    reached = engine.reached(everywhere=everywhere)
    add(reached, engine, table, snapshots, 1, by_name=by_name)
    return reached


def add(
    reached: ReachedFiles,
    engine: Engine,
    table: SmallTable,
    snapshots: Collection[int],
    number: int,
    *,
    by_name: bool = False,
    expand: Expand | None = None,
) -> None:
    table_format = IcebergFormat(ObjectStores())
    state = table_format.load("table", table.publish())
    wanted = set(map(str, snapshots))
    roots = [Root(file, True) for owner, file in table_format.roots(state) if owner in wanted]
    with closing(engine.survey(roots, expand or table_format.expand, Territory(None))) as survey:
        reached.add(survey, number, by_name=by_name)


def found(reached: ReachedFiles, paths: Iterable[str], names: Collection[str] = ()) -> set[tuple[str, int, bool]]:
    rows: set[tuple[str, int, bool]] = set()
    for batch in reached.find(list(paths), names):
        assert tuple(batch.schema.names) == REACHED_COLUMNS
        rows |= {(row["identity"], row["walk"], row["by_name"]) for row in batch.to_pylist()}
    return rows
