"""`why` of a Paimon table: every root that holds a file is named, and what it says of staying is what a plan does."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from firnline.cli.main import run
from firnline.model.holds import Hold
from firnline.ops.looking.why import Explanation, SnapshotAnswer
from firnline.ops.marks.holds import add_hold
from harness.paimon import layout
from harness.paimon.java_table import JavaTable
from harness.paimon.layout import CHANGELOG, SNAPSHOT, TAG, PaimonRoot
from harness.paimon.shapes import MAIN
from harness.paimon.worlds import Paimon, PaimonWorld

from .small import EVERYTHING_OLD, Copy, row
from .test_changelogs import NATIVELY
from .test_changelogs import make as make_decoupled
from .worlds import grown, table

FULL = bool(os.environ.get("FIRNLINE_FULL"))
COUNT = int(os.environ.get("FIRNLINE_PAIMON_WHYS", "60" if FULL else "3"))
FIRST = 900
ASKED = {name: EVERYTHING_OLD[name] for name in ("retain_last", "older_than")}


# ---------------------------------------------------------------- random tables


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_every_root_that_needs_a_file_is_named(both: Paimon, seed: int) -> None:
    with grown(both, seed) as world:
        needs = {root: each.files for root, each in world.reader().reachable().items()}
        victims = {each["path"].removeprefix("file://") for each in world_plan(world).files()}
        files = sorted({path for each in needs.values() for path in each if is_no_metadata(path, world)})
        for path in random.Random(seed).sample(files, min(30, len(files))):
            answer = Copy(world.root).process().why(table(world), path, **ASKED)
            assert named(answer, world) == {holder(root, world) for root, each in needs.items() if path in each}, path
            assert answer.kept != (path in victims), path


def world_plan(world: PaimonWorld) -> Any:
    return Copy(world.root).process().plan(table(world), blast_radius=1.0, **ASKED)


def is_no_metadata(path: str, world: PaimonWorld) -> bool:
    inside = path.removeprefix(str(world.folder))
    return not inside.startswith(("/snapshot/", "/tag/", "/schema/", "/branch/", "/changelog/", "/consumer/"))


def named(answer: Explanation, world: PaimonWorld) -> set[Holder]:
    """Returns what holds the file: versions by their lists, and changelogs."""
    return {
        Holder(*branch_of(each.snapshot), "") if each.kind == CHANGELOG else version(each, world)
        for each in answer.needed_by
    }


class Holder(NamedTuple):
    """A version of a branch, which a snapshot or tags hold, by its delta list; of a changelog that is not named."""

    branch: str
    number: int
    delta: str


def version(answer: SnapshotAnswer, world: PaimonWorld) -> Holder:
    branch, number = branch_of(answer.snapshot)
    tags = [PaimonRoot(branch, TAG, name.rpartition(":")[2]) for name in answer.refs]
    held = [PaimonRoot(branch, SNAPSHOT, str(number)), *tags] if "@" not in answer.snapshot else tags
    path = next(path for path in (root.path(world.folder) for root in held) if path.exists())
    return Holder(branch, number, layout.document(path)["deltaManifestList"])


def branch_of(snapshot: str) -> tuple[str, int]:
    branch, _, number = snapshot.rpartition("@")[0 if "@" in snapshot else 2].rpartition(":")
    return branch or MAIN, int(number)


def holder(root: PaimonRoot, world: PaimonWorld) -> Holder:
    document = layout.document(root.path(world.folder))
    return Holder(root.branch, document["id"], "" if root.kind == CHANGELOG else document["deltaManifestList"])


# ---------------------------------------------------------------- kinds of roots


@pytest.fixture(scope="module")
def made(both: Paimon) -> Iterator[Path]:
    """A table with two snapshots, changelogs of three earlier ones, a tag, a branch and a consumer."""
    folder = make_decoupled(both, {"changelog-producer": "input"})
    copy = Copy(folder)
    copy.expire(**NATIVELY)
    JavaTable(both.java, folder / "t").consumer(MAIN, "stream", 9)
    yield folder
    shutil.rmtree(folder)


def asked(copy: Copy, path: str | Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[Any, str]:
    """Returns what the command says for programs and for people."""
    command = ["why", copy.table, str(path), *options]
    assert run([*command, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert run(command) == 0
    return answer, capsys.readouterr().out


def only_of(copy: Copy, *roots: PaimonRoot) -> str:
    """Returns a file that these roots need, and no other."""
    needs = {root: each.files for root, each in copy.reader().reachable().items()}
    shared = set.intersection(*(needs[root] for root in roots))
    others = {path for root, each in needs.items() if root not in roots for path in each}
    return next(path for path in sorted(shared - others) if "/manifest/" in path)


def test_a_changelog_is_named(copy: Copy, capsys: pytest.CaptureFixture[str]) -> None:
    path = only_of(copy, PaimonRoot(MAIN, CHANGELOG, "6"))
    answer, words = asked(copy, path, capsys)
    (needed,) = answer["needed_by"]
    assert (needed["kind"], needed["snapshot"], needed["kept"], answer["kept"]) == ("changelog", "6", True, True)
    assert needed["reasons"] == ["changelog.time-retained: newer than 1d"]
    assert needed["timestamp"]
    assert "needed by 1 changelog, of which stay: 1" in words
    assert "changelog 6" in words
    assert needed["reasons"][0] in words


def test_a_changelog_whose_time_is_over_keeps_nothing(copy: Copy, capsys: pytest.CaptureFixture[str]) -> None:
    path = only_of(copy, PaimonRoot(MAIN, CHANGELOG, "5"))
    answer, words = asked(copy, path, capsys, "--now", "2100-01-01T00:00:00Z")
    assert (answer["needed_by"][0]["kind"], answer["kept"]) == ("changelog", False)
    assert "changelog.time-retained: older than 1d" in words


def test_a_tag_and_a_branchs_snapshot_are_named(copy: Copy, capsys: pytest.CaptureFixture[str]) -> None:
    path = only_of(
        copy, PaimonRoot(MAIN, TAG, "two"), PaimonRoot("side", SNAPSHOT, "2"), PaimonRoot("side", TAG, "two")
    )
    answer, words = asked(copy, path, capsys)
    found = {each["snapshot"]: each["refs"] for each in answer["needed_by"]}
    assert found == {"2": ["two"], "side:2": ["side", "side:two"]}
    assert "tag two" in words
    assert "branch head side" in words


def test_a_consumer_and_a_hold_are_named(copy: Copy, capsys: pytest.CaptureFixture[str]) -> None:
    add_hold(copy.process().places.table_context(copy.table), Hold("audit", "ann", "case 12", "9", None))
    path = only_of(copy, PaimonRoot(MAIN, SNAPSHOT, "9"), PaimonRoot(MAIN, TAG, "firnline-hold-audit"))
    answer, words = asked(copy, path, capsys)
    (needed,) = answer["needed_by"]
    assert "pin consumer stream, which reads from 9 on" in needed["reasons"]
    assert "hold audit: by ann, case 12, until it is released" in needed["reasons"]
    assert needed["refs"] == ["main", "firnline-hold-audit"]
    assert all(reason in words for reason in needed["reasons"])


def test_a_run_that_can_be_undone_is_named(copy: Copy, capsys: pytest.CaptureFixture[str]) -> None:
    path = only_of(copy, PaimonRoot(MAIN, SNAPSHOT, "8"))
    copy.process().expire(copy.table, retain_last=1, older_than="2100-01-01T00:00:00Z", blast_radius=1.0, grace="72h")
    assert Path(path).exists()
    answer, words = asked(copy, path, capsys)
    (needed,) = answer["needed_by"]
    assert (needed["kind"], needed["snapshot"], answer["kept"]) == ("run", "8", True)
    assert "needed by 1 snapshot that a run took out, of which stay: 1" in words
    assert "may put it back" in needed["reasons"][0]


# ---------------------------------------------------------------- metadata


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("changelog/changelog-6", "changelog 6"),
        ("consumer/consumer-stream", "consumer stream"),
        ("tag/tag-two", "tag two"),
        ("snapshot/snapshot-9", "snapshot 9"),
        ("branch/branch-side/tag/tag-two", "tag side:two"),
        ("branch/branch-side/snapshot/snapshot-2", "snapshot side:2"),
        ("schema/schema-0", "the table's own metadata"),
        ("snapshot/LATEST", "the table's own metadata"),
    ],
)
def test_a_metadata_file_is_what_it_tells_of(
    copy: Copy, path: str, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    answer, words = asked(copy, f"{copy.table}/{path}", capsys)
    assert (answer["kept"], answer["needed_by"], answer["reasons"][0]) == (True, [], what)
    assert f"stays: it is {what}" in words


@pytest.mark.parametrize("path", ["snapshot/snapshot-8", "changelog/changelog-5"])
def test_a_metadata_file_goes_with_what_it_tells_of(copy: Copy, path: str, capsys: pytest.CaptureFixture[str]) -> None:
    later = ("--retain-last", "1", "--older-than", "2100-01-01T00:00:00Z", "--now", "2100-01-01T00:00:00Z")
    answer, words = asked(copy, f"{copy.table}/{path}", capsys, *later)
    assert not answer["kept"]
    assert "would go: it is" in words


def test_a_snapshot_that_stays_as_a_tag_leaves_its_folder(
    both: Paimon, copy: Copy, capsys: pytest.CaptureFixture[str]
) -> None:
    JavaTable(both.java, copy.folder / "t").write(MAIN, [row(10, "ten")])
    add_hold(copy.process().places.table_context(copy.table), Hold("audit", "ann", "case 12", "8", None))
    (Path(copy.table) / "tag/tag-firnline-hold-audit").unlink()
    (Path(copy.table) / "consumer/consumer-stream").unlink()
    options = ("--retain-last", "1", "--older-than", "2100-01-01T00:00:00Z")
    answer, _ = asked(copy, f"{copy.table}/snapshot/snapshot-8", capsys, *options)
    assert not answer["kept"]
    assert "it leaves this folder as the tag firnline-snapshot-8" in answer["reasons"]
