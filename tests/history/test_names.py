"""Who points at a history, and how a file is known to be this table's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from firnline.catalogs.rest.commits import updates_of
from firnline.history.names import INDEX, PATH, HistoryPointer, folder_of, is_of_table
from firnline.ports.formats import State, UndoWindow
from harness.world import World

LIST = "expired-snapshots-0a1b.json"


@pytest.fixture
def state(world: World) -> State:
    return world.process().places.source(world.table).load()


def on_a_server(state: State) -> State:
    return replace(state, capabilities=replace(state.capabilities, undo=UndoWindow.BEFORE_COMMIT))


def test_a_server_that_applies_updates_is_told_by_the_property_alone(world: World, state: State) -> None:
    amendment = HistoryPointer("s3://b/x.json").amendment(on_a_server(state))
    assert amendment.expired_path is None
    edited = world.process().places.source(world.table).format.amend(state, amendment, world.clock())
    assert {"action": "set-properties", "updates": {PATH: "s3://b/x.json"}} in updates_of(
        state.document, edited.document
    )


def test_an_index_that_is_not_needed_any_more_is_taken_away(state: State) -> None:
    assert HistoryPointer("p").amendment(state).properties_gone == frozenset()
    before = replace(state, properties={**state.properties, INDEX: "i"})
    assert HistoryPointer("p").amendment(before).properties_gone == {INDEX}
    assert HistoryPointer("p", "j").amendment(before).properties_gone == frozenset()


def test_a_file_is_known_by_its_folder_wherever_the_table_lay(state: State, tmp_path: Path) -> None:
    moved = replace(state, location=str(tmp_path))
    assert is_of_table(moved, f"{folder_of(state)}/{LIST}")
    assert is_of_table(moved, f"{folder_of(state, '20260101T000000Z-abcdef')}/{LIST}")
    assert not is_of_table(replace(state, uuid="another"), f"{folder_of(state)}/{LIST}")
    assert not is_of_table(state, f"{folder_of(state)}/../{LIST}")
    assert not is_of_table(state, f"{folder_of(state)}/00001-x.metadata.json")
    assert not is_of_table(state, f"{folder_of(state).replace('_firnline', 'data')}/{LIST}")


def test_a_table_without_a_uuid_has_a_folder_too(state: State) -> None:
    old = replace(state, uuid="no uuid, at /t")
    assert folder_of(old).endswith("/_firnline/history/no-uuid")
    assert is_of_table(old, f"{folder_of(old)}/{LIST}")
