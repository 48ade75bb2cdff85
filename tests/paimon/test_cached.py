"""A walk of a Paimon table through a cache says what one says that opens every unit, whatever happened in between."""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from firnline.caches.disk import DiskCache
from firnline.caches.expand import look_up
from firnline.caches.opening import OpenedCache
from firnline.errors import ObjectNotFound, UnreadableMetadata, UnsupportedFormat
from firnline.formats.paimon.table import PaimonFormat
from firnline.local.engine import LocalEngine
from firnline.model.files import File, FileKind
from firnline.model.times import DAY_MS
from firnline.ops.neighbours.folders import OwnFolders
from firnline.ops.neighbours.outward import UnitMeans, Walked, outward
from firnline.ops.runs.plan import roots
from firnline.ports.engines import Engine, Territory
from firnline.ports.formats import State
from firnline.ports.stores import Read
from firnline.stores.objects import ObjectStores
from firnline.stores.real_paths import RealPaths
from firnline.testing.counting import Counting, CountingLog
from firnline.testing.damage import SPOILED
from harness.paimon import layout
from harness.paimon.java_table import JavaTable
from harness.paimon.shapes import MAIN, Shape
from harness.paimon.worlds import Paimon, grow
from tests.caches.lying import LIES, Ledger, Lie, memory_of

from .small import Copy, row

FULL = bool(os.environ.get("FIRNLINE_FULL"))
SEEDS = range(400, 520) if FULL else range(400, 405)
NO_CACHE = OpenedCache("off")


def released(state: State, rng: random.Random | None = None) -> frozenset[str]:
    """Returns the owners that need nothing once some snapshots go that no ref names: all of them, or by chance."""
    heads = {ref.snapshot for ref in state.refs.values()}
    gone = {each.id for each in state.graph if each.id not in heads and (rng is None or rng.random() < 0.6)}
    return PaimonFormat(ObjectStores()).consequences(state, gone, set(), None).released


def said(
    folder: Path | str, memory: OpenedCache, store: Read | None = None, engine: Engine | None = None, seed: int = 0
) -> dict[str, Any]:
    """Returns what an engine says of a table as it is now, walking as a plan does."""
    table_format = PaimonFormat(store or ObjectStores())
    state = table_format.load("t", str(folder))
    gone = released(state, random.Random(seed) if seed else None)
    expand = memory.of(store or ObjectStores())(table_format, state, DAY_MS)
    survey = (engine or LocalEngine()).survey(roots(table_format, state, gone), expand, Territory(None))
    files = {"victims": survey.victim_batches(), "kept": survey.kept_batches()}
    listed = {
        name: sorted(
            (each["identity"], each["key"], each["kind"], each["size"] or 0) for b in some for each in b.to_pylist()
        )
        for name, some in files.items()
    }
    survey.close()
    return {**listed, "totals": (survey.kept, survey.victims, survey.units_opened, survey.unsized)}


def opened_in(counting: Counting | CountingLog) -> set[str]:
    return {key for verb, key in counting.calls() if verb == "get" and "/manifest/" in key}


def test_a_second_walk_opens_nothing_and_a_third_what_is_new(both: Paimon, copy: Copy, tmp_path: Path) -> None:
    memory, opened = memory_of(DiskCache(str(tmp_path / "cache"))), []
    for number in range(3):
        if number == 2:
            before = set(os.listdir(Path(copy.table) / "manifest"))
            JavaTable(both.java, Path(copy.table)).write(MAIN, [row(7, "seven")])
        counting = Counting(ObjectStores())
        assert said(copy.table, memory, counting) == said(copy.table, NO_CACHE)
        opened.append({Path(key).name for key in opened_in(counting)})
    assert opened[0]
    assert not opened[1]
    assert opened[2] == set(os.listdir(Path(copy.table) / "manifest")) - before


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", SEEDS)
def test_random_tables_are_walked_alike_with_and_without(both: Paimon, seed: int, quick_folder: Path) -> None:
    world = grow(both, seed, quick_folder)
    memory = memory_of(Ledger())
    for choice in (1, 2, 1):
        expected = said(world.folder, NO_CACHE, seed=choice)
        assert said(world.folder, memory, seed=choice) == expected


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_executors_recall_what_threads_remembered(both: Paimon, copy: Copy, tmp_path: Path) -> None:
    from firnline.spark.engine import SparkEngine
    from firnline.spark.session import session

    memory = memory_of(DiskCache(str(tmp_path / "cache")))
    expected = said(copy.table, NO_CACHE)
    for number in range(2):
        store = CountingLog(ObjectStores(), str(tmp_path / f"{number}.log"))
        assert said(copy.table, memory, store, SparkEngine(session())) == expected
        assert bool(opened_in(store)) is (number == 0)
    assert said(copy.table, memory) == expected


@settings(max_examples=400 if FULL else 8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lie=LIES)
def test_no_lie_changes_what_a_walk_says(made: Path, lie: Lie) -> None:
    ledger = Ledger()
    expected = said(made / "t", NO_CACHE)
    assert said(made / "t", memory_of(ledger)) == expected
    assert ledger.entries
    ledger.lie = lie
    assert said(made / "t", memory_of(ledger)) == expected


@pytest.mark.parametrize("how", SPOILED)
@pytest.mark.parametrize("kind", [FileKind.MANIFEST_LIST, FileKind.MANIFEST])
def test_a_unit_that_was_spoiled_since_is_noticed(copy: Copy, how: str, kind: FileKind) -> None:
    """Never rules 3 and 12: the cache has the true answer, but nobody may go on beside a damaged unit."""
    memory = memory_of(Ledger())
    every = said(copy.table, memory)["kept"]
    unit = next(key for _, key, found, _ in every if found == kind.value)
    SPOILED[how](unit.removeprefix("file://"))
    with pytest.raises((UnreadableMetadata, UnsupportedFormat)) as refused:
        said(copy.table, memory)
    assert unit in refused.value.message


@pytest.mark.parametrize(
    ("option", "value"),
    [("data-file.path-directory", "rows"), ("partition.legacy-name", "false"), ("changelog-file.prefix", "data-")],
)
def test_paths_follow_the_schema_that_is_there_now(copy: Copy, option: str, value: str) -> None:
    """A table that was dropped and put back from a copy under other options: the same manifests, and other paths."""
    memory = memory_of(Ledger())
    before = said(copy.table, memory)
    for path in Path(copy.table).rglob("schema-*"):
        document = json.loads(path.read_text())
        path.write_text(json.dumps({**document, "options": {**document["options"], option: value}}))
    after = said(copy.table, NO_CACHE)
    assert after == said(copy.table, memory) == said(copy.table, memory)
    if option != "partition.legacy-name":  # texts are called the same by both
        assert after != before


def test_where_schemas_put_files_in_several_places_nothing_is_remembered_of_manifests(copy: Copy) -> None:
    """Where the layouts of a table differ, a file lies where one is found: that can change without any unit."""
    ledger = Ledger()
    schema = Path(copy.table) / "schema"
    document = json.loads((schema / "schema-0").read_text())
    options = {**document["options"], "data-file.path-directory": "rows"}
    (schema / "schema-1").write_text(json.dumps({**document, "id": 1, "options": options}))
    assert said(copy.table, memory_of(ledger)) == said(copy.table, NO_CACHE)
    assert ledger.entries, "lists do not depend on schemas"
    counting = Counting(ObjectStores())
    assert said(copy.table, memory_of(ledger), counting) == said(copy.table, NO_CACHE)
    manifests = {Path(key).name for key in opened_in(counting)}
    assert manifests
    assert not [name for name in manifests if name.startswith("manifest-list-")]


def test_a_schema_that_cannot_be_read_is_asked_for_once(copy: Copy) -> None:
    """And not once for each of thousands of units: opening the first of them tells of it anyway."""
    (Path(copy.table) / "schema" / "schema-7").write_text("{")
    counting = Counting(ObjectStores())
    expand = PaimonFormat(counting).expand
    units = [File(FileKind.MANIFEST, f"{copy.table}/manifest/{number}", opens=True) for number in range(50)]
    assert [expand.depends_on(each) for each in units] == [None] * 50
    assert counting.calls()["get", f"{copy.table}/schema/schema-7"] == 1


def test_a_table_that_was_dropped_and_made_again_is_read_again(both: Paimon, copy: Copy) -> None:
    memory = memory_of(Ledger())
    said(copy.table, memory)
    shutil.rmtree(copy.table)
    table = JavaTable(both.java, Path(copy.table))
    table.create(Shape("java", True, (), {"bucket": "2"}))
    for number in range(3):
        table.write(MAIN, [row(number, "anew")])
    assert said(copy.table, memory) == said(copy.table, NO_CACHE)


def test_a_branch_that_was_dropped_and_made_again_is_read_again(both: Paimon, copy: Copy) -> None:
    memory = memory_of(Ledger())
    said(copy.table, memory)
    table = JavaTable(both.java, Path(copy.table))
    table.drop_branch("side")
    table.create_branch("side", "two")
    table.write("side", [row(10, "ten")])
    assert said(copy.table, memory) == said(copy.table, NO_CACHE)


def test_a_manifest_replaced_under_its_name_is_read_again(copy: Copy) -> None:
    memory = memory_of(Ledger())
    before = said(copy.table, memory)
    manifests = [Path(key.removeprefix("file://")) for _, key, kind, _ in before["kept"] if kind == "manifest"]
    sizes = {path.stat().st_size: path for path in manifests}
    one, other = (sizes[size] for size in sorted(sizes)[:2])
    one.write_bytes(other.read_bytes())
    for known in (memory, NO_CACHE):
        with pytest.raises(UnreadableMetadata, match=one.name):  # its list tells another length
            said(copy.table, known)


class Forgetful(ObjectStores):
    """A store that says once of every changelog's list that it is not there, although it is listed."""

    def __init__(self, lists: set[str]) -> None:
        super().__init__()
        self.lists = lists

    def get(self, key: str) -> bytes:
        if Path(key).name in self.lists:
            self.lists.discard(Path(key).name)
            raise ObjectNotFound(f"no object {key!r}")
        return super().get(key)


def lists_of_changes(copy: Copy) -> set[str]:
    documents = [layout.document(path) for path in (Path(copy.table) / "snapshot").glob("snapshot-*")]
    lists = {each["changelogManifestList"] for each in documents if each.get("changelogManifestList")}
    assert lists
    return lists


def test_a_list_that_was_missing_for_a_moment_is_not_remembered_as_empty(copy: Copy) -> None:
    """A changelog's list may be gone, and then nobody needs what it named. One that is only gone for a moment must not
    count as gone for ever: all that it names would look like garbage.
    """
    memory = memory_of(Ledger())
    said(copy.table, memory, Forgetful(lists_of_changes(copy)))
    assert said(copy.table, memory) == said(copy.table, NO_CACHE)


# ---------------------------------------------------------------- the index of outward references


def led_to(folder: str, own: OwnFolders, walked: Walked, store: Read | None = None) -> set[Any]:
    """Returns what leads out of these folders, with what earlier walks noted."""
    table_format = PaimonFormat(store or ObjectStores())
    files = [file for _, file in table_format.roots(table_format.load("t", folder))]
    means = UnitMeans(table_format.expand, look_up(ObjectStores(), files).of, RealPaths())
    return set(outward(files, means, own, walked)[0])


def test_what_is_known_of_references_follows_the_schema_too(copy: Copy) -> None:
    own, walked = OwnFolders((f"file://{copy.table}/",), (f"file://{copy.table}/rows/",)), Walked()
    assert not led_to(copy.table, own, walked)
    assert walked.units
    for path in Path(copy.table).rglob("schema-*"):
        document = json.loads(path.read_text())
        options = {**document["options"], "data-file.path-directory": "rows"}
        path.write_text(json.dumps({**document, "options": options}))
    found = led_to(copy.table, own, walked)
    assert found
    assert found == led_to(copy.table, own, Walked())


def test_a_list_that_was_missing_for_a_moment_is_not_known_to_lead_nowhere(copy: Copy) -> None:
    own, walked = OwnFolders(("file:///elsewhere/",), ()), Walked()
    led_to(copy.table, own, walked, Forgetful(lists_of_changes(copy)))
    assert led_to(copy.table, own, walked) == led_to(copy.table, own, Walked())
