"""A history that outgrew one list: the same answers, a valid list for simple readers, and damage is said."""

from __future__ import annotations

import json

import pytest

from firnline.errors import UnreadableMetadata
from firnline.ops.history import remember
from harness.world import World
from tests.history.parts import INDEX, expire, files, ids, listed, local, pointer

EXPIRED = ("s1", "s3", "s4", "s5", "s7")


@pytest.fixture
def cut(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """A world whose lists hold one snapshot or two."""
    monkeypatch.setattr(remember, "LONGEST_LIST", 700)
    world.policy = "history: forever"
    return world


def found(world: World) -> list[int]:
    return sorted(each["snapshot-id"] for each in world.process().expired_snapshots(world.table))


def segments(world: World) -> list[str]:
    index = json.loads(local(world.writer.document()["properties"][INDEX]).read_bytes())
    return [each["key"] for each in index["segments"]]


def test_all_of_it_is_found_and_the_pointer_leads_to_the_newest(cut: World) -> None:
    expire(cut, grace="0s")
    assert len(segments(cut)) >= 2
    assert found(cut) == sorted(ids(cut, *EXPIRED))
    assert cut.snapshots["s7"] in {each["snapshot-id"] for each in listed(cut)}
    assert all(isinstance(json.loads(local(each).read_bytes()), list) for each in segments(cut))
    expire(cut, grace="0s", older_than=cut.clock(), retain_last=1)
    assert found(cut) == sorted(ids(cut, *EXPIRED, "s8"))


def test_undo_takes_out_of_segments_too(cut: World) -> None:
    run = str(expire(cut).run.id)
    cut.process().undo(run)
    assert found(cut) == []
    assert INDEX not in cut.writer.document()["properties"]
    expire(cut)
    assert found(cut) == sorted(ids(cut, *EXPIRED))


def test_a_segment_that_was_changed_or_lost_is_said(cut: World) -> None:
    expire(cut, grace="0s")
    changed = local(segments(cut)[0])
    kept = changed.read_bytes()
    changed.write_bytes(kept.replace(b"append", b"delete"))
    with pytest.raises(UnreadableMetadata, match="not as it was written"):
        found(cut)
    changed.unlink()
    with pytest.raises(UnreadableMetadata, match="missing"):
        found(cut)
    changed.write_bytes(kept)
    assert found(cut) == sorted(ids(cut, *EXPIRED))


def test_an_index_that_is_gone_refuses_the_commit(cut: World) -> None:
    expire(cut, grace="0s")
    before = pointer(cut)
    local(cut.writer.document()["properties"][INDEX]).unlink()
    with pytest.raises(UnreadableMetadata, match="index"):
        expire(cut, grace="0s", older_than=cut.clock(), retain_last=1)
    assert pointer(cut) == before


def test_segments_that_the_present_index_or_an_earlier_one_names_stay(cut: World) -> None:
    expire(cut, grace="0s")
    first = {local(each) for each in segments(cut)}
    expire(cut, grace="0s", older_than=cut.clock(), retain_last=1)
    assert first <= set(files(cut))
    assert {local(each) for each in segments(cut)} <= set(files(cut))
