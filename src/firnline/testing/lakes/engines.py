"""What every engine must do with several tables at once: subclass the contract beside that of one table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from firnline.errors import FirnlineError, PermanentStoreError, UnreadableMetadata
from firnline.formats.iceberg.table import IcebergFormat
from firnline.model.files import File, FileKind, Root
from firnline.ops.runs.plan import roots
from firnline.ports.engines import Engine, ServerRoots, TableWalk, Territory
from firnline.ports.expanding import Expand, Expanded, Together, Wrapping
from firnline.ports.stores import ObjectMeta, Read
from firnline.stores.objects import ObjectStores
from firnline.testing.counting import CountingLog
from firnline.testing.damage import remove
from firnline.testing.surveys import Found, found
from firnline.testing.tables import QuickFiles, SmallTable

Answer = Found | tuple[type[FirnlineError], str]
"""What an engine says of a table, as values; an error by its kind and message."""


def walk_of(table: SmallTable, expired: Sequence[int], store: Read, elsewhere: Sequence[ServerRoots] = ()) -> TableWalk:
    """Returns what an engine is asked of a table as it is now."""
    table_format = IcebergFormat(store)
    state = table_format.load("table", table.publish())
    starts = list(roots(table_format, state, {str(each) for each in expired}))
    return TableWalk(starts, table_format.expand, Territory(state.owned), elsewhere)


def of_all(engine: Engine, walks: Sequence[TableWalk]) -> list[Answer]:
    """Returns what the engine says of each table when it is asked of all."""
    return [
        (type(answer), answer.message) if isinstance(answer, FirnlineError) else found(answer)
        for answer in engine.surveys(walks)
    ]


def alone(engine: Engine, walk: TableWalk) -> Answer:
    """Returns what the engine says of one table when it is asked of no other."""
    try:
        return found(engine.survey(walk.roots, walk.expand, walk.territory, walk.elsewhere))
    except FirnlineError as problem:
        return type(problem), problem.message


@dataclass(frozen=True, slots=True)
class NamingNothing(Wrapping):
    """Opens units as a server has them on which each is an empty copy: it names itself and nothing below it."""

    def __call__(self, units: Sequence[File], together: Together = map) -> Expanded:
        import pyarrow as pa
        import pyarrow.compute as pc

        found = self.expand(units, together)
        itself = pc.equal(found.rows.column("key"), pa.array([units[number].key for number in found.of.tolist()]))
        return Expanded(found.rows.filter(itself), found.of[itself.to_numpy(zero_copy_only=False)])


@dataclass(frozen=True, slots=True)
class LockedOut(Wrapping):
    """Opens units, but none below a folder: the credentials of one table need not open another's."""

    folder: str

    def __call__(self, units: Sequence[File], together: Together = map) -> Expanded:
        for unit in units:
            if unit.key.startswith(self.folder):
                raise PermanentStoreError(f"{unit.key}: no permission")
        return self.expand(units, together)


@dataclass(frozen=True, slots=True)
class Blind(Wrapping):
    """Opens units, but finds none below a folder and takes them for gone, as some kinds of units may be."""

    folder: str

    def __call__(self, units: Sequence[File], together: Together = map) -> Expanded:
        seen = [number for number, unit in enumerate(units) if not unit.key.startswith(self.folder)]
        if not seen:
            nothing = self.expand(units[:1], together)
            return Expanded(nothing.rows.slice(0, 0), nothing.of[:0])
        return self.expand([units[number] for number in seen], together).numbered(seen)


@dataclass(frozen=True, slots=True)
class Backwards:
    """Opens the innermost units first: those that others name come when their round is over."""

    expand: Expand

    @property
    def order(self) -> tuple[FileKind, ...]:
        return self.expand.order[::-1]

    @property
    def folds(self) -> bool:
        return self.expand.folds

    def __call__(self, units: Sequence[File], together: Together = map) -> Expanded:
        return self.expand(units, together)


@dataclass(frozen=True, slots=True)
class AnotherServer:
    """Local files of which those of one folder lie in another: what is called alike here and there is not the same."""

    called: str
    really: str

    def get(self, key: str) -> bytes:
        return ObjectStores().get(key.replace(self.called, self.really))

    def head(self, key: str) -> ObjectMeta:
        return replace(ObjectStores().head(key.replace(self.called, self.really)), key=key)

    def list(self, prefix: str) -> Iterator[ObjectMeta]:
        found = ObjectStores().list(prefix.replace(self.called, self.really))
        return (replace(each, key=each.key.replace(self.really, self.called)) for each in found)

    def names(self, folder: str) -> Sequence[str]:
        return ObjectStores().names(folder.replace(self.called, self.really))

    def links(self, folder: str) -> Sequence[str]:
        found = ObjectStores().links(folder.replace(self.called, self.really))
        return [each.replace(self.really, self.called) for each in found]

    def put(self, key: str, data: bytes) -> None:
        QuickFiles().put(key.replace(self.called, self.really), data)


class TogetherContract:
    """The contract of Engine for several tables. A subclass gives the fixture `engine`."""

    @pytest.fixture
    def three(self, tmp_path: Path) -> list[SmallTable]:
        """Three tables, one of them in another's folder."""
        places = ("a", "b", "a/inner")
        tables = [SmallTable(QuickFiles(), f"file://{tmp_path}/{place}") for place in places]
        for number, table in enumerate(tables):
            table.append(2 + number)
            table.append(1)
            table.overwrite(table.live()[:2])
        return tables

    def test_each_of_several_tables_answers_as_it_would_alone(self, engine: Engine, three: list[SmallTable]) -> None:
        walks = [walk_of(table, list(table.changes)[:2], ObjectStores()) for table in three]
        answers = of_all(engine, walks)
        assert answers == [alone(engine, walk) for walk in walks]
        assert all(isinstance(answer, Found) and answer.victims and answer.kept for answer in answers)

    def test_no_table_is_no_answer(self, engine: Engine) -> None:
        assert list(engine.surveys([])) == []

    def test_a_unit_that_tables_share_is_opened_once(
        self, engine: Engine, three: list[SmallTable], tmp_path: Path
    ) -> None:
        """Two registrations of one table, of which one keeps what the other would let go."""
        counting = CountingLog(ObjectStores(), str(tmp_path / "calls.log"))
        expired = list(three[0].changes)[:2]
        walks = [walk_of(three[0], expired, counting), walk_of(three[0], [], counting), walk_of(three[1], [], counting)]
        before = counting.calls()
        first, second, _ = of_all(engine, walks)
        opened = counting.calls() - before
        assert set(opened.values()) == {1}
        assert isinstance(first, Found)
        assert isinstance(second, Found)
        assert first.victims
        assert not second.victims
        assert first.units_opened == second.units_opened

    def test_a_table_that_cannot_be_read_stops_no_other(self, engine: Engine, three: list[SmallTable]) -> None:
        walks = [walk_of(table, list(table.changes)[:2], ObjectStores()) for table in three]
        whole = of_all(engine, walks)
        damaged = next(path for path, made in three[1].made.items() if made.kind is FileKind.MANIFEST)
        remove(damaged.removeprefix("file://"))
        answers = of_all(engine, walks)
        assert answers[0] == whole[0]
        assert answers[2] == whole[2]
        kind, said = answers[1]  # type: ignore[misc]
        assert (kind, damaged in said) == (UnreadableMetadata, True)

    def test_what_another_needs_is_spared_and_must_be_readable(self, engine: Engine, three: list[SmallTable]) -> None:
        keeps = walk_of(three[0], [], ObjectStores())
        needs = [ServerRoots([Root(root.file, True) for root in keeps.roots], keeps.expand)]
        expired = list(three[0].changes)[:2]
        walks = [walk_of(three[0], expired, ObjectStores(), needs), walk_of(three[1], expired, ObjectStores())]
        answers = of_all(engine, walks)
        assert answers == [alone(engine, walk) for walk in walks]
        assert isinstance(answers[0], Found)
        assert not answers[0].victims
        assert answers[0].spared

    def test_what_others_need_is_read_on_the_server_of_each(self, engine: Engine, three: list[SmallTable]) -> None:
        """Units of two servers have one name, and on one of them name nothing."""
        keeps = walk_of(three[0], [], ObjectStores())
        needed = [Root(root.file, True) for root in keeps.roots]
        there = ServerRoots(needed, NamingNothing(keeps.expand), "there")
        here = ServerRoots(needed, keeps.expand, "here")
        expired = list(three[0].changes)[:2]
        whole = of_all(engine, [walk_of(three[0], expired, ObjectStores(), [here])])
        for parts in ([there, here], [here, there]):
            walk = replace(walk_of(three[0], expired, ObjectStores(), parts), server="there")
            assert of_all(engine, [walk]) == whole
            assert of_all(engine, [walk, walk_of(three[1], [], ObjectStores())])[:1] == whole
        assert isinstance(whole[0], Found)
        assert whole[0].spared
        assert not whole[0].victims

    def test_what_one_tables_means_cannot_open_is_opened_by_anothers(
        self, engine: Engine, three: list[SmallTable]
    ) -> None:
        open_to_all = walk_of(three[0], list(three[0].changes)[:2], ObjectStores())
        locked = TableWalk(open_to_all.roots, LockedOut(open_to_all.expand, three[0].location), open_to_all.territory)
        wanted = alone(engine, open_to_all)
        assert of_all(engine, [open_to_all, locked])[0] == wanted
        of_locked, of_open = of_all(engine, [locked, open_to_all])
        assert of_open == wanted
        kind, _ = of_locked  # type: ignore[misc]
        assert kind is PermanentStoreError

    def test_what_one_tables_means_do_not_find_is_opened_by_anothers(
        self, engine: Engine, three: list[SmallTable]
    ) -> None:
        """A unit that may be gone is gone for those only who do not find it."""
        seeing = walk_of(three[0], list(three[0].changes)[:2], ObjectStores())
        blind = TableWalk(seeing.roots, Blind(seeing.expand, three[0].location), seeing.territory)
        wanted = alone(engine, seeing)
        assert of_all(engine, [blind, seeing]) == [alone(engine, blind), wanted]
        assert of_all(engine, [seeing, blind])[0] == wanted
        assert of_all(engine, [blind, blind, seeing])[2] == wanted

    def test_units_of_two_servers_are_not_one_whatever_they_are_called(self, engine: Engine, tmp_path: Path) -> None:
        """One server was copied to another, and the table went on there by itself under the same names."""
        location, there = f"file://{tmp_path}/lake/t", AnotherServer(f"{tmp_path}/lake", f"{tmp_path}/copy")
        ours, theirs = SmallTable(QuickFiles(), location), SmallTable(there, location)
        for table, files in ((ours, 3), (theirs, 2)):
            table.append(files)
            table.append(1)
        ours.overwrite(ours.live()[:2])
        theirs.overwrite(theirs.live()[1:])
        walks = [
            replace(walk_of(ours, list(ours.changes)[:2], ObjectStores()), server="here"),
            replace(walk_of(theirs, list(theirs.changes)[:2], there), server="there"),
        ]
        wanted = [alone(engine, walk) for walk in walks]
        assert of_all(engine, walks) == wanted
        assert of_all(engine, walks[::-1]) == wanted[::-1]
        assert len({str(answer) for answer in wanted}) == len(walks)

    def test_a_unit_that_comes_too_late_ends_the_walk(self, engine: Engine, three: list[SmallTable]) -> None:
        """Nobody knows what it names, and all of that would look unneeded."""
        walks = [walk_of(table, list(table.changes)[:2], ObjectStores()) for table in three[:2]]
        late = [replace(walk, expand=Backwards(walk.expand)) for walk in walks]
        for answer in (alone(engine, late[0]), *of_all(engine, late)):
            kind, said = answer  # type: ignore[misc]
            assert kind is UnreadableMetadata
            assert "it should come before" in said
