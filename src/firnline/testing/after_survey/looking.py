"""What every engine must do when it looks at files: subclass the contract, say which engine, and pytest runs it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from contextlib import closing
from pathlib import Path

import pytest

from firnline.errors import StoreError
from firnline.formats.iceberg.table import IcebergFormat
from firnline.model.files import File, FileKind, Root, Tally
from firnline.ports.engines import FAULT_COLUMNS, OUTSIDE, Engine, Listing, Survey, Territory
from firnline.ports.listings import KeyRange
from firnline.ports.stores import Head
from firnline.stores.objects import ObjectStores
from firnline.stores.ranges import ObjectRanges
from firnline.testing.counting import CountingLog
from firnline.testing.manifests import Item
from firnline.testing.tables import QuickFiles, SmallTable

Fault = tuple[str, int | None, int | None]


class LookingContract:
    """The contract of Engine.faults. A subclass gives the fixture `engine`; its executors must see local files."""

    @pytest.fixture
    def engine(self) -> Engine:
        raise NotImplementedError

    @pytest.fixture
    def table(self, tmp_path: Path) -> SmallTable:
        """A table whose files are all there."""
        table = SmallTable(QuickFiles(), f"file://{tmp_path}/t")
        table.append(3)
        table.delete_rows(table.live()[:1])
        table.append(4)
        return table

    def test_files_that_are_as_their_table_says_are_no_faults(self, engine: Engine, table: SmallTable) -> None:
        assert faults(engine, table, ObjectStores()) == {}

    def test_what_is_missing_or_of_another_size_is_told_with_both_sizes(
        self, engine: Engine, table: SmallTable
    ) -> None:
        gone, short, long, *_ = sorted(table.live())
        Path(gone.removeprefix("file://")).unlink()
        _fill(short, 0)
        _fill(long, table.made[long].size + 1)
        sizes = {path: table.made[path].size for path in (gone, short, long)}
        assert faults(engine, table, ObjectStores()) == {
            gone: ("data", sizes[gone], None),
            short: ("data", sizes[short], 0),
            long: ("data", sizes[long], sizes[long] + 1),
        }

    def test_every_needed_file_is_asked_for_once_and_no_other(
        self, engine: Engine, table: SmallTable, tmp_path: Path
    ) -> None:
        counting = CountingLog(ObjectStores(), str(tmp_path / "calls.log"))
        kept, *expired = sorted(table.changes, reverse=True)
        assert faults(engine, table, counting, {str(each) for each in expired}) == {}
        assert counting.calls() == Counter(dict.fromkeys((("head", path) for path in table.reachable(kept)), 1))

    def test_a_store_that_cannot_tell_stops_the_look(self, engine: Engine, table: SmallTable) -> None:
        """What nobody could look at is not sound."""
        table.register([Item("tape://drive/x", 5)])
        with pytest.raises(StoreError, match="tape://"):
            faults(engine, table, ObjectStores())

    def test_every_look_asks_again(self, engine: Engine, table: SmallTable) -> None:
        with closing(_survey(engine, table)) as survey:
            assert not list(engine.faults(survey, ObjectStores()))
            gone = min(table.live())
            Path(gone.removeprefix("file://")).unlink()
            (batch,) = engine.faults(survey, ObjectStores())
            assert batch.column("key").to_pylist() == [gone]

    def test_a_survey_of_another_engine_is_refused(self, engine: Engine, table: SmallTable) -> None:
        with pytest.raises(TypeError, match="survey of another engine"):
            list(engine.faults(object(), ObjectStores()))  # type: ignore[arg-type]
        with closing(_survey(engine, table)) as survey, pytest.raises(TypeError, match="listing of another engine"):
            list(engine.faults(survey, ObjectStores(), object()))  # type: ignore[arg-type]

    def test_a_listing_tells_the_same_as_to_ask_for_every_file(
        self, engine: Engine, table: SmallTable, tmp_path: Path
    ) -> None:
        """Missing, short, long, empty, outside of what was listed, and spelled in another way: only the doubtful are
        asked for.
        """
        counting = CountingLog(ObjectStores(), str(tmp_path / "calls.log"))
        gone, short, empty, *_ = sorted(table.live())
        outside, elsewhere = (f"file://{tmp_path}/outside/{name}.parquet" for name in ("there", "gone"))
        respelled = f"file:{tmp_path}/t/data/respelled.parquet"
        Path(tmp_path / "outside").mkdir()
        for path in (outside, respelled):
            Path(path.partition(":")[2].replace("///", "/")).write_bytes(b"12345")
        table.register([Item(each, 5) for each in (outside, elsewhere, respelled)])
        Path(gone.removeprefix("file://")).unlink()
        _fill(short, 1)
        _fill(empty, 0)
        one_by_one = faults(engine, table, ObjectStores())
        listed = engine.list([KeyRange(table.location)], ObjectRanges())
        assert faults(engine, table, counting, listed=listed) == one_by_one
        assert one_by_one.keys() == {gone, short, empty, elsewhere}
        assert counting.calls() == Counter(
            dict.fromkeys((("head", each) for each in (gone, short, empty, outside, elsewhere, respelled)), 1)
        )

    def test_an_empty_listing_proves_nothing(self, engine: Engine, table: SmallTable, tmp_path: Path) -> None:
        Path(min(table.live()).removeprefix("file://")).unlink()
        listed = engine.list([KeyRange(f"file://{tmp_path}/nothing")], ObjectRanges())
        assert faults(engine, table, ObjectStores(), listed=listed).keys() == {min(table.live())}

    def test_what_another_table_may_own_is_needed_and_neither_looked_for_nor_taken(
        self, engine: Engine, tmp_path: Path
    ) -> None:
        """Not even where files anywhere may go. A file of the table's own that it leads to stays, as what it is."""
        needed, expired, own = (f"file://{tmp_path}/{name}" for name in ("needed", "expired", "own"))
        told = ((FileKind.VIRTUAL, needed, True), (FileKind.VIRTUAL, expired, False), (FileKind.VIRTUAL, own, True))
        roots = [Root(File(kind, key), is_kept) for kind, key, is_kept in (*told, (FileKind.CHUNK, own, False))]
        with closing(engine.survey(roots, IcebergFormat(ObjectStores()).expand, Territory(None))) as survey:
            assert survey.victims.all == Tally()
            assert survey.spared == {OUTSIDE: Tally(1)}
            assert {kind: tally.files for kind, tally in survey.kept.by_kind.items()} == {
                FileKind.CHUNK: 1,
                FileKind.VIRTUAL: 1,
            }
            (missing,) = engine.faults(survey, ObjectStores())
        assert missing.column("key").to_pylist() == [own]


def faults(
    engine: Engine, table: SmallTable, store: Head, expired: Collection[str] = (), listed: Listing | None = None
) -> dict[str, Fault]:
    """Returns what the engine says is wrong with the table's files. What comes twice would be counted twice."""
    found: dict[str, Fault] = {}
    with closing(_survey(engine, table, expired)) as survey:
        for batch in engine.faults(survey, store, listed):
            assert tuple(batch.schema.names) == FAULT_COLUMNS
            for row in batch.to_pylist():
                assert row["key"] not in found
                found[row["key"]] = (row["kind"], row["size"], row["found"])
    return found


def _survey(engine: Engine, table: SmallTable, expired: Collection[str] = ()) -> Survey:
    table_format = IcebergFormat(ObjectStores())
    state = table_format.load("table", table.publish())
    roots = (Root(file, owner not in expired, owner) for owner, file in table_format.roots(state))
    return engine.survey(roots, table_format.expand, Territory(None))


def _fill(path: str, size: int) -> None:
    Path(path.removeprefix("file://")).write_bytes(b"x" * size)
