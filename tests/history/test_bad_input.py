"""A history that cannot be read: a clear error, the live snapshots all the same, and no commit that would lose it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from firnline.cli.main import run
from firnline.errors import UnreadableMetadata
from harness.pointers import CATALOG
from harness.world import World
from tests.history.parts import PATH, expire, files, ids, listed, local, pointer

Damage = Callable[[Path], object]


def _twice(path: Path) -> None:
    entries = json.loads(path.read_bytes())
    path.write_text(json.dumps([*entries, entries[0]]))


DAMAGES: dict[str, Damage] = {
    "it is missing": Path.unlink,
    "Expecting|Unterminated|delimiter": lambda path: path.write_bytes(path.read_bytes()[:-20]),
    "Expecting value": lambda path: path.write_text("not JSON"),
    "in it twice": _twice,
    "not a JSON list": lambda path: path.write_text("{}"),
    "is not a snapshot": lambda path: path.write_text('[{"snapshot-id": "7"}]'),
}


@pytest.fixture
def remembering(world: World) -> World:
    """A world with a history, and with more to expire: two snapshots that nothing keeps in thirty days."""
    expire(world, grace="0s")
    world.writer.append(1)
    return world


def go_on(world: World, **options: object) -> object:
    return world.process().expire(world.table, grace="0s", older_than=world.clock(), retain_last=1, **options)


@pytest.mark.parametrize("said", DAMAGES)
@pytest.mark.sampled(3)
def test_a_damaged_history_is_said_refused_and_left_where_it_is(remembering: World, said: str) -> None:
    world = remembering
    place = str(pointer(world))
    DAMAGES[said](local(place))
    timeline, trouble = world.process().history(world.table)
    live = world.writer.document()["snapshots"]
    assert timeline.live == len(live)
    assert trouble is not None
    with pytest.raises(UnreadableMetadata, match=said) as refused:
        go_on(world)
    assert "new_history" in refused.value.hint
    assert world.writer.document()["snapshots"] == live
    before = local(place).read_bytes() if local(place).exists() else None

    go_on(world, new_history=True)
    assert {each["snapshot-id"] for each in listed(world)} <= {each["snapshot-id"] for each in live}
    assert listed(world)
    assert (local(place).read_bytes() if local(place).exists() else None) == before
    world.check()


def test_a_pointer_to_another_tables_file_is_not_followed(remembering: World) -> None:
    world = remembering
    other = World.make(world.folder / "other")
    other.policy = "history: forever"
    expire(other)
    theirs = str(pointer(other))
    world.writer.change(lambda document: document["properties"].update({PATH: theirs}))
    with pytest.raises(UnreadableMetadata, match="not this table's"):
        list(world.process().expired_snapshots(world.table))
    with pytest.raises(UnreadableMetadata, match="not this table's"):
        go_on(world)
    go_on(world, new_history=True)
    assert pointer(world) != theirs
    assert local(theirs).exists()


def test_undo_goes_on_without_a_history_that_cannot_be_read(world: World) -> None:
    run = str(expire(world).run.id)
    local(str(pointer(world))).write_text("damaged")
    world.process().undo(run)
    world.check()
    assert ids(world, "s3", "s4") <= {each["snapshot-id"] for each in world.writer.document()["snapshots"]}


def test_new_history_where_the_present_one_is_sound_goes_on_with_it(remembering: World) -> None:
    world = remembering
    before = {each["snapshot-id"] for each in listed(world)}
    folder = files(world)[0].parent
    go_on(world, new_history=True)
    assert before < {each["snapshot-id"] for each in listed(world)}
    assert {path.parent for path in files(world)} == {folder}


def test_a_field_that_another_tool_wrote_counts_beside_the_property(remembering: World) -> None:
    world = remembering
    extra = {"snapshot-id": 77, "timestamp-ms": world.clock() - 1000, "summary": {"operation": "append"}}
    theirs = local(str(pointer(world))).with_name("expired-snapshots-00ff.json")
    theirs.write_text(json.dumps([*listed(world), extra]))
    world.writer.change(lambda document: document.update({"expired-snapshots-path": f"file://{theirs}"}))
    found = [each["snapshot-id"] for each in world.process().expired_snapshots(world.table)]
    assert sorted(found) == sorted([*(each["snapshot-id"] for each in listed(world)), 77])
    go_on(world)
    assert 77 in {each["snapshot-id"] for each in listed(world)}
    assert world.writer.document()["expired-snapshots-path"] == pointer(world)


def test_nothing_of_a_history_is_read_before_somebody_asks(remembering: World) -> None:
    world = remembering
    local(str(pointer(world))).unlink()
    world.process().plan(world.table)
    lazy = world.process().expired_snapshots(world.table)
    with pytest.raises(UnreadableMetadata, match="missing"):
        next(lazy)


def test_the_command_line_shows_what_lives_and_says_what_is_wrong(
    remembering: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    world = remembering
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(f"PYICEBERG_CATALOG__{CATALOG.upper()}__TYPE", "sql")
    monkeypatch.setenv(f"PYICEBERG_CATALOG__{CATALOG.upper()}__URI", world.pointers.uri)
    assert run(["history", world.table]) == 0
    capsys.readouterr()
    local(str(pointer(world))).unlink()
    assert run(["history", world.table, "--json"]) == 14
    printed = capsys.readouterr()
    assert json.loads(printed.out)["snapshots"] == {"live": len(world.writer.document()["snapshots"]), "expired": 0}
    assert json.loads(printed.err)["error"]["kind"] == "unreadable"
