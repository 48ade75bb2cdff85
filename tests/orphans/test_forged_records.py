"""The record of a search says whom it asked: forged, it would leave out whoever is in the way."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from firnline.errors import RefusedForSafety, UnreadableMetadata
from firnline.model.files import Tally
from firnline.ops.runs.status import RunStatus
from firnline.plans.stages import CommitExpiry, stages_json, stages_of_expiry
from firnline.ports.formats import UndoWindow
from harness.crowds import Crowd
from harness.disks import local
from harness.forgery import Forgery


def a_search(crowd: Crowd, target: str, **asked: Any) -> RunStatus:
    crowd.stray("t/data/left.parquet")
    _, carried = crowd.process().orphans(target, grace="1h", consent=lambda plan: True, **asked)
    assert carried is not None
    return carried


def forged_from(carried: RunStatus, keys: list[str]) -> Forgery:
    """Returns a run like this one that names other files and asks nobody."""
    made = Forgery.side_objects(carried.run.folder.folder)
    shutil.rmtree(local(carried.run.folder.folder))
    facts = [local(key).stat() for key in keys]
    made.victims(keys, size=[each.st_size for each in facts], modified_ms=[1] * len(keys), etag=[None] * len(keys))
    made.edit(lambda plan: plan["scope"].update({"also": [], "folders": ["file:///"]}))
    made.edit(lambda plan: plan.update({"catalogs": []}))
    made.committed()
    return made


def files_of(folder: Path) -> list[str]:
    return [f"file://{path}" for path in folder.rglob("*") if path.is_file() and "_firnline" not in path.parts]


@pytest.fixture
def path_table(crowd: Crowd) -> Path:
    """A table that no catalog has, in the folder of one that a catalog has."""
    crowd.table("t")
    crowd.table("gone", inside="t/data/inner")
    crowd.pointers.drop("gone")
    return crowd.folder / "lake/t/data/inner"


def test_a_forged_search_deletes_nothing_of_a_table_that_no_catalog_has(crowd: Crowd, path_table: Path) -> None:
    before = crowd.files()
    carried = a_search(crowd, crowd.name("t"), dead=frozenset({uuid_of(path_table)}))
    made = forged_from(carried, files_of(path_table))
    crowd.clock.advance(2 * 3_600_000)
    with pytest.raises(RefusedForSafety, match="not sealed with your key"):
        crowd.later().purge_table(crowd.name("t"))
    with pytest.raises(RefusedForSafety, match="not sealed with your key"):
        crowd.later().purge(f"{crowd.name('t')}@{made.stamp}")
    assert before <= crowd.files()


STRANGE: list[dict[str, Any]] = [
    {"scope": None}, {"scope": {}}, {"scope": {"same": 5}}, {"scope": {"same": [["a", "b", "c"]]}},
    {"scope": {"same": [[1, 2]]}}, {"scope": {"also": [5]}}, {"scope": {"folders": "x"}}, {"scope": {"departed": 5}},
    {"catalogs": None}, {"catalogs": [5]}, {"older_than": 5},
]  # fmt: skip


def test_a_forged_search_in_which_nothing_makes_sense_is_refused_by_whatever_reads_it(crowd: Crowd) -> None:
    crowd.table("t")
    carried = a_search(crowd, crowd.name("t"))
    made = Forgery(local(carried.run.folder.folder))
    before = json.loads((made.folder / "plan.json").read_text())
    crowd.clock.advance(2 * 3_600_000)
    for spoiled in STRANGE:
        scope = {**before["scope"], **(spoiled.get("scope") or {})}
        said = {**before, **spoiled, "scope": scope if spoiled.get("scope") else spoiled.get("scope", scope)}
        made.edit(lambda plan, said=said: plan.update(said))  # type: ignore[misc]
        for act in (crowd.later().run, crowd.later().purge, crowd.later().undo):
            with pytest.raises(UnreadableMetadata, match="or a strange one"):
                act(carried.id)
    crowd.check()


def uuid_of(folder: Path) -> str:
    document = json.loads(max((folder / "metadata").glob("*.metadata.json")).read_text())
    return str(document["table-uuid"])


def test_a_run_on_a_folder_is_a_search_and_nothing_else(crowd: Crowd) -> None:
    """As the run of a table it would ask no table at all: a folder needs nothing."""
    crowd.table("t")
    target = f"{crowd.lake}/t"
    before = crowd.files()
    carried = a_search(crowd, crowd.lake)
    made = forged_from(carried, files_of(local(target)))
    expiry = stages_json(stages_of_expiry(CommitExpiry(1, 0), 0, Tally(1, 1), UndoWindow.AFTER_COMMIT))
    of_an_expiry = {"policy": "", "keep": [], "seen": {}, "beside": {"expire": []}}
    made.edit(lambda plan: plan.update({"kind": "expiry", "stages": expiry, **of_an_expiry}))
    made.edit(lambda plan: plan["parts"].update(walked={}))
    crowd.clock.advance(2 * 3_600_000)
    with pytest.raises(RefusedForSafety, match="there is only a folder"):
        crowd.later().purge(f"{crowd.folder}/lake@{made.stamp}")
    assert before <= crowd.files()
    crowd.check()


def test_what_was_found_outside_goes_only_if_the_operator_says_so_at_the_purge(crowd: Crowd) -> None:
    crowd.table("t", properties={"write.data.path": f"{crowd.lake}/far"})
    far = crowd.stray("far/left.parquet")
    crowd.stray("t/metadata/left.avro")
    _, carried = crowd.process().orphans(crowd.name("t"), grace="1h", include_outside=True, consent=lambda plan: True)
    assert carried is not None
    crowd.clock.advance(2 * 3_600_000)
    (done,) = crowd.later().purge_table(crowd.name("t"))
    assert done.outcomes["spared"].files == 1
    assert local(far).exists()
    crowd.later().orphans(crowd.name("t"), grace="0s", include_outside=True, consent=lambda plan: True)
    assert not local(far).exists()
    crowd.check()
