"""What tells that a manifest list was cut, and what only seems to."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import fastavro
import pytest

from firnline.errors import UnreadableMetadata
from firnline.formats.iceberg.counts import claim_of
from firnline.lake import open_lake
from harness.disks import local
from harness.processes import Process
from harness.world import World

TOTAL, MADE, KEPT = "total-data-files", "manifests-created", "manifests-kept"


@pytest.fixture
def world(quick_folder: Path) -> World:
    return World.make(quick_folder)


def head(world: World) -> dict[str, Any]:
    """Returns the current snapshot, with its whole manifest list and everything below it needed."""
    document = world.writer.document()
    return next(each for each in document["snapshots"] if each["snapshot-id"] == document["current-snapshot-id"])


def says(world: World, snapshot: int, **summary: str) -> None:
    """Has the table say something else of a snapshot."""

    def edit(document: dict[str, Any]) -> None:
        (found,) = (each for each in document["snapshots"] if each["snapshot-id"] == snapshot)
        found["summary"] = {"operation": "append", **{name.replace("_", "-"): said for name, said in summary.items()}}

    world.writer.change(edit)


def manifests_in(place: str) -> int:
    with local(place).open("rb") as file:
        return sum(1 for _ in fastavro.reader(file))


def rewrite_list(place: str, keep: int | None = None) -> int:
    """Returns how many manifests a list has, written again with one block for each; only the first `keep` stay, as if
    the file had been cut there.
    """
    path = local(place)
    with path.open("rb") as file:
        reader = fastavro.reader(file)
        schema, entries = reader.writer_schema, list(reader)
        metadata = {key: value for key, value in reader.metadata.items() if not key.startswith("avro.")}
    out = io.BytesIO()
    writer = fastavro.write.Writer(out, schema, codec="deflate", sync_interval=1, metadata=metadata)
    ends = []
    for entry in entries:
        writer.write(entry)
        writer.flush()
        ends.append(out.tell())
    path.write_bytes(out.getvalue() if keep is None else out.getvalue()[: ends[keep - 1]])
    return len(entries)


def trusting(world: World, policy: str) -> Process:
    world.policy = policy
    return world.process()


# ---------------------------------------------------------------- lists that are whole


def test_a_total_that_is_wrong_says_nothing_where_the_manifests_are_counted(world: World) -> None:
    """As Iceberg's Java writes it after it deleted a file that was in the table twice."""
    snapshot = head(world)
    manifests = manifests_in(snapshot["manifest-list"])
    says(
        world,
        snapshot["snapshot-id"],
        total_data_files="9999",
        manifests_created="1",
        manifests_kept=str(manifests - 1),
    )
    assert world.process().expire(world.table, grace="0s").state == "done"
    world.check()


def test_more_than_a_summary_tells_of_is_no_sign_of_a_cut(world: World) -> None:
    says(world, head(world)["snapshot-id"], total_data_files="0", manifests_created="0", manifests_kept="0")
    assert world.process().expire(world.table, grace="0s").state == "done"
    world.check()


# ---------------------------------------------------------------- doubts


def test_a_total_that_disagrees_is_a_doubt_that_names_the_snapshot_and_the_way_to_settle_it(world: World) -> None:
    snapshot = head(world)["snapshot-id"]
    says(world, snapshot, total_data_files="9999")
    before = world.files()
    with pytest.raises(UnreadableMetadata, match="its snapshot of 9999: it was cut short, or the") as refused:
        world.process().expire(world.table, grace="0s")
    assert "--trust-snapshot" in refused.value.message
    assert world.files() == before


def test_the_operator_settles_a_doubt_for_one_snapshot_and_the_plan_says_so(world: World) -> None:
    snapshot = head(world)["snapshot-id"]
    says(world, snapshot, total_data_files="9999")
    process = trusting(world, f"trust-snapshots: {snapshot}\n")
    plan = process.plan(world.table).plan
    assert any(str(snapshot) in note for note in plan.notes)
    assert process.expire(world.table, grace="0s").state == "done"
    world.check()


def test_a_word_for_one_snapshot_is_none_for_another(world: World) -> None:
    snapshots = [each["snapshot-id"] for each in world.writer.document()["snapshots"]]
    for each in snapshots[-2:]:
        says(world, each, total_data_files="9999")
    with pytest.raises(UnreadableMetadata, match="cut short, or"):
        trusting(world, f"trust-snapshots: {snapshots[-1]}\n").check(world.table)
    assert trusting(world, f"trust-snapshots: {snapshots[-1]}, {snapshots[-2]}\n").check(world.table).sound


# ---------------------------------------------------------------- lists that are cut


@pytest.mark.sampled(1)
@pytest.mark.parametrize("counted", [True, False], ids=["manifests counted", "files counted"])
def test_a_list_cut_between_two_blocks_stops_every_walk(world: World, counted: bool) -> None:
    world.writer.append(2)
    world.writer.append(2)
    snapshot = head(world)
    manifests = rewrite_list(snapshot["manifest-list"])
    assert manifests > 2
    if counted:
        says(world, snapshot["snapshot-id"], manifests_created="1", manifests_kept=str(manifests - 1))
    before = world.files()
    for keep in range(1, manifests):
        whole = local(snapshot["manifest-list"]).read_bytes()
        rewrite_list(snapshot["manifest-list"], keep)
        for act in (
            lambda: world.process().plan(world.table),
            lambda: world.process().expire(world.table, grace="0s"),
            lambda: world.process().check(world.table),
            lambda: world.process().orphans(world.table, grace="0s", consent=lambda plan: True),
        ):
            with pytest.raises(UnreadableMetadata, match="cut short"):
                act()
        local(snapshot["manifest-list"]).write_bytes(whole)
    assert world.files() == before


def test_a_cut_that_takes_only_deletes_away_is_seen_where_the_manifests_are_counted(world: World) -> None:
    """A total of data files says nothing of it, and rows that were deleted would come back."""
    snapshot = head(world)
    manifests = rewrite_list(snapshot["manifest-list"])
    says(world, snapshot["snapshot-id"], total_data_files="0", manifests_created=str(manifests), manifests_kept="0")
    rewrite_list(snapshot["manifest-list"], manifests - 1)
    with pytest.raises(UnreadableMetadata, match=f"{manifests - 1} manifests, its snapshot of {manifests}"):
        world.process().plan(world.table)


# ---------------------------------------------------------------- what a summary claims


@pytest.mark.parametrize(
    ("summary", "claim"),
    [
        ({TOTAL: "7"}, 7),
        ({TOTAL: "7", MADE: "1", KEPT: "2"}, -4),
        ({TOTAL: "7", MADE: "0", KEPT: "0"}, -1),
        ({TOTAL: "7", MADE: "1"}, 7),
        ({TOTAL: "7", MADE: "x", KEPT: "2"}, 7),
        ({TOTAL: "-7"}, None),
        ({}, None),
        (None, None),
        ([], None),
    ],
)
def test_what_a_summary_claims(summary: Any, claim: int | None) -> None:
    assert claim_of(summary) == claim


def test_the_word_is_taken_from_the_option_and_from_the_file_alone(tmp_path: Path) -> None:
    (tmp_path / "firnline.yaml").write_text(json.dumps({"trust-snapshots": "1, 2"}))
    assert open_lake(str(tmp_path / "firnline.yaml"), trust=["3"]).places.trusted == {"1", "2", "3"}
