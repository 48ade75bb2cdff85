"""What is noted about a commit that can be cut: once, beside the table, and under no name that anybody else gives."""

from __future__ import annotations

import json
import time
import uuid
from pathlib import Path

import pytest

from firnline.formats.commit_notes import CommitNotes, CommitStage, is_commit
from firnline.journal.layout import notes_folder
from firnline.model.locations import join
from firnline.ports.discard import OwnName
from firnline.stores.objects import ObjectStores

STORE = ObjectStores()


@pytest.fixture
def notes(tmp_path: Path) -> CommitNotes:
    return CommitNotes(STORE, tmp_path.as_uri(), str(uuid.uuid4()))


@pytest.mark.parametrize("stage", CommitStage)
def test_a_stage_is_noted_alone_and_twice_alike(notes: CommitNotes, stage: CommitStage) -> None:
    assert not any(map(notes.has, CommitStage))
    notes.put(stage)
    notes.put(stage)
    assert [each for each in CommitStage if notes.has(each)] == [stage]
    another = CommitNotes(STORE, notes.location, str(uuid.uuid4()))
    assert not another.has(stage)


@pytest.mark.parametrize("stage", CommitStage)
def test_a_note_is_one_of_firnlines_own_names_and_says_whose_it_is(notes: CommitNotes, stage: CommitStage) -> None:
    notes.put(stage)
    (found,) = STORE.list(notes_folder(notes.location))
    name = found.key.rpartition("/")[2]
    assert OwnName.NOTE.names(name)
    assert json.loads(STORE.get(join(notes_folder(notes.location), name))) == {"commit": notes.commit}


def test_a_commit_that_nobody_began_was_begun_before_everything(notes: CommitNotes) -> None:
    assert notes.begun_ms() == 0
    notes.put(CommitStage.DONE)
    assert notes.begun_ms() == 0
    notes.put(CommitStage.BEGUN)
    assert abs(notes.begun_ms() - time.time() * 1000) < 60_000


@pytest.mark.parametrize("name", ["", "../../x", "a/b", f"{uuid.UUID(int=1)}.begun", f"{uuid.UUID(int=1)}\n"])
def test_what_no_commit_is_called(name: str) -> None:
    assert not is_commit(name)
    assert is_commit(str(uuid.UUID(int=1)))
