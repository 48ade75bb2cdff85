"""What a table's folder may hold: hints that lie, names that mean nothing, and damage, which is refused by its name."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from firnline.errors import FirnlineError, NoSuchTable, RefusedForSafety, UnreadableMetadata, UnsupportedFormat
from harness.paimon.java_table import JavaTable
from harness.paimon.layout import SNAPSHOT, PaimonRoot
from harness.paimon.shapes import MAIN, Shape
from harness.paimon.worlds import Paimon

from .small import EVERYTHING_OLD, Copy, row, seen_by_java

HINTS = {
    "absent": None,
    "ahead": "99",
    "behind": "1",
    "garbage": "snapshot",
    "empty": "",
    "half a number": "1\n2",
    "negative": "-1",
    "of another table": "123456789012345678901234567890",
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("said", HINTS.values(), ids=list(HINTS))
def test_hints_are_never_believed(both: Paimon, made: Path, copy: Copy, said: str | None) -> None:
    right = Copy(made).process().plan(copy.table, **EVERYTHING_OLD).to_json()
    for name in ("EARLIEST", "LATEST"):
        hint = copy.folder / "t" / "snapshot" / name
        hint.unlink(missing_ok=True)
        if said is not None:
            hint.write_text(said)
    wrong = copy.process().plan(copy.table, **EVERYTHING_OLD).to_json()
    for name in ("expire", "keep", "victims", "kept"):
        assert wrong[name] == right[name]
    copy.expire()
    assert not copy.missing()
    assert (copy.folder / "t" / "snapshot" / "EARLIEST").read_text() == "6"
    assert seen_by_java(both, copy) == (7, 6, seen_by_java(both, Copy(made))[2])


def test_names_that_mean_nothing_are_left_alone(copy: Copy) -> None:
    for name in ("snapshot/snapshot-abc", "snapshot/snapshot-3.tmp", "tag/other", "consumer/x", "snapshot/.snapshot-9"):
        (copy.folder / "t" / name).parent.mkdir(exist_ok=True)
        (copy.folder / "t" / name).write_text("?")
    copy.expire()
    assert (copy.folder / "t" / "snapshot/snapshot-abc").exists()
    assert not copy.missing()


def test_a_hole_in_the_numbers_is_no_obstacle(copy: Copy) -> None:
    (copy.folder / "t/snapshot/snapshot-4").unlink()
    plan = copy.process().plan(copy.table, **EVERYTHING_OLD).to_json()
    assert "1" in plan["expire"]
    copy.expire()
    assert not copy.missing()


def test_fields_that_nobody_knows_survive(copy: Copy) -> None:
    path = copy.folder / "t/snapshot/snapshot-3"
    path.write_text(json.dumps({**json.loads(path.read_text()), "news": {"of": [1, 2]}}))
    before = path.read_bytes()
    ended = copy.expire(grace="1h")
    assert not path.exists()
    copy.process().undo(str(ended.run.id))
    assert path.read_bytes() == before


def _tear(copy: Copy) -> Path:
    path = copy.folder / "t/snapshot/snapshot-2"
    path.write_bytes(path.read_bytes()[:40])
    return path


def _unknown_version(copy: Copy) -> Path:
    path = copy.folder / "t/snapshot/snapshot-2"
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": 4}))
    return path


def _other_number(copy: Copy) -> Path:
    path = copy.folder / "t/snapshot/snapshot-2"
    path.write_text(json.dumps({**json.loads(path.read_text()), "id": 7}))
    return path


def _no_list(copy: Copy) -> Path:
    named = json.loads((copy.folder / "t/snapshot/snapshot-7").read_text())["baseManifestList"]
    path = copy.folder / "t/manifest" / named
    path.unlink()
    return path


def _no_manifest(copy: Copy) -> Path:
    path = next(path for path in (copy.folder / "t/manifest").glob("manifest-*-0") if "list" not in path.name)
    path.unlink()
    return path


def _cut_manifest(copy: Copy) -> Path:
    path = next(path for path in (copy.folder / "t/manifest").glob("manifest-*-0") if "list" not in path.name)
    path.write_bytes(path.read_bytes()[:-20])
    return path


def _branch_without_schema(copy: Copy) -> Path:
    path = copy.folder / "t/branch/branch-side/schema"
    shutil.rmtree(path)
    return path


def _schema_of_a_snapshot(copy: Copy) -> Path:
    """The newest schema is there, and the one that a snapshot was written with is not."""
    said = copy.folder / "t/snapshot/snapshot-2"
    path = copy.folder / "t/schema/schema-7"
    said.write_text(json.dumps({**json.loads(said.read_text()), "schemaId": 7}))
    return path


def _torn_tag(copy: Copy) -> Path:
    path = copy.folder / "t/tag/tag-two"
    path.write_text("{")
    return path


def _path_for_a_name(copy: Copy) -> Path:
    path = copy.folder / "t/snapshot/snapshot-2"
    path.write_text(json.dumps({**json.loads(path.read_text()), "baseManifestList": "../../other/list"}))
    return path


DAMAGES: dict[Callable[[Copy], Path], type[FirnlineError]] = {
    _tear: UnreadableMetadata,
    _unknown_version: UnsupportedFormat,
    _other_number: UnreadableMetadata,
    _no_list: UnreadableMetadata,
    _no_manifest: UnreadableMetadata,
    _cut_manifest: UnreadableMetadata,
    _branch_without_schema: UnreadableMetadata,
    _schema_of_a_snapshot: UnreadableMetadata,
    _torn_tag: UnreadableMetadata,
    _path_for_a_name: UnreadableMetadata,
}


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda each: each.__name__)
def test_damage_is_refused_by_its_name(copy: Copy, damage: Callable[[Copy], Path]) -> None:
    path = damage(copy)
    before = copy.picture()
    with pytest.raises(DAMAGES[damage]) as caught:
        copy.expire()
    assert str(path).removeprefix(copy.table) in caught.value.message
    assert copy.picture() == before


def test_a_folder_without_a_schema_is_no_table(copy: Copy) -> None:
    shutil.rmtree(copy.folder / "t/schema")
    with pytest.raises(NoSuchTable):
        copy.process().plan(copy.table)


def test_files_of_an_iceberg_table_in_a_place_that_nobody_looks_at_stay(copy: Copy) -> None:
    path = copy.folder / "t/schema/schema-0"
    document = json.loads(path.read_text())
    options = {**document["options"], "metadata.iceberg.storage": "rest-catalog"}
    path.write_text(json.dumps({**document, "options": options}))
    with pytest.raises(FirnlineError, match="Iceberg"):
        copy.process().plan(copy.table)


def test_what_a_rule_keeps_below_the_range_becomes_a_tag(copy: Copy) -> None:
    path = copy.folder / "t/snapshot/snapshot-3"
    document = {**json.loads(path.read_text()), "timeMillis": 1_700_000_000_000}
    path.write_text(json.dumps(document))
    view = copy.process().plan(copy.table, keep={"last": "1", "daily": "2"}, blast_radius=1.0)
    tagged = view.to_json()["tagged"]
    assert tagged == {"3": "firnline-snapshot-3"}
    assert "kept below the unbroken range, as a tag: 3 as firnline-snapshot-3" in str(view)
    copy.expire(retain_last=None, older_than=None, keep={"last": "1", "daily": "2"})
    assert json.loads((copy.folder / "t/tag/tag-firnline-snapshot-3").read_text()) == document
    assert not copy.missing()
    copy.expire()  # without the rule nothing keeps it, and its tag is none of anybody's
    assert not (copy.folder / "t/tag/tag-firnline-snapshot-3").exists()
    assert not copy.missing()


def test_a_consumer_pins_what_it_has_not_read(both: Paimon, copy: Copy) -> None:
    folder = copy.folder / "t/consumer"
    folder.mkdir(exist_ok=True)
    (folder / "consumer-reader").write_text('{"nextSnapshot": 4}')
    plan = copy.process().plan(copy.table, **EVERYTHING_OLD).to_json()
    assert {each["snapshot"] for each in plan["keep"]} >= {"4", "5", "6", "7"}
    reasons = next(each["reasons"] for each in plan["keep"] if each["snapshot"] == "5")
    assert "pin consumer reader, which reads from 4 on" in reasons


def test_a_purge_waits_a_minute_for_tags_that_are_on_their_way(copy: Copy) -> None:
    assert copy.expire(sole_writer=False).state == "committed"
    copy.clock.advance(61_000)
    (again,) = copy.process().resume(copy.table)
    assert again.state == "done"


def test_a_tag_that_was_on_its_way_keeps_its_files(both: Paimon, copy: Copy) -> None:
    """Whoever read the snapshot's file just before it went writes a tag from it just after."""
    text = (copy.folder / "t/snapshot/snapshot-3").read_bytes()
    needed = next(each.files for root, each in copy.reader().reachable().items() if root.name == "3")
    copy.expire(sole_writer=False)
    (copy.folder / "t/tag/tag-late").write_bytes(text)
    copy.clock.advance(61_000)
    (again,) = copy.process().resume(copy.table)
    assert again.outcomes["spared"].files > 0
    assert needed - {str(copy.folder / "t/snapshot/snapshot-3")} <= copy.reader().disk
    assert not copy.missing()


def test_an_undo_is_refused_where_the_range_moved_on(copy: Copy) -> None:
    ended = copy.expire(grace="1h")
    (copy.folder / "t/snapshot/snapshot-6").unlink()
    before = copy.picture()
    with pytest.raises(RefusedForSafety, match="between snapshot 5 and 7"):
        copy.process().undo(str(ended.run.id))
    assert copy.picture() == before


def test_why_tells_what_keeps_a_file_and_what_does_not(copy: Copy) -> None:
    plan = copy.process().plan(copy.table, **EVERYTHING_OLD)
    victims = [each["path"] for each in plan.files()]
    asked = {"retain_last": 2, "older_than": EVERYTHING_OLD["older_than"]}
    for path in victims:
        answer = copy.process().why(copy.table, path, **asked)
        assert answer.needed_by, path
        assert not answer.kept, path
    newest = next(iter(copy.reader().reachable()[max(_snapshots(copy))].data))
    assert copy.process().why(copy.table, newest, **asked).kept


def _snapshots(copy: Copy) -> list[PaimonRoot]:
    return [root for root in copy.reader().reachable() if root.branch == MAIN and root.kind == SNAPSHOT]


def test_a_list_that_a_tag_needs_must_be_there_although_a_changelog_names_it_too(both: Paimon, tmp_path: Path) -> None:
    """The changelog of a table that writes none is what its snapshots added: their own delta list."""
    table = JavaTable(both.java, tmp_path / "t")
    options = {"bucket": "1", "changelog.num-retained.min": "1000", "changelog.num-retained.max": "2000"}
    table.create(Shape("java", True, (), options))
    for number in range(1, 5):
        table.write(MAIN, [row(number, "text")])
        table.tag(MAIN, f"t{number}", number)
    copy = Copy(tmp_path)
    copy.expire(retain_last=1)
    assert (tmp_path / "t/changelog/changelog-2").exists() or (tmp_path / "t/snapshot/snapshot-2").exists()
    table.write(MAIN, [row(9, "text")])
    delta = json.loads((tmp_path / "t/tag/tag-t2").read_text())["deltaManifestList"]
    (tmp_path / "t/manifest" / delta).unlink()
    with pytest.raises(UnreadableMetadata, match=delta):
        copy.process().check(copy.table)
    (tmp_path / "t/tag/tag-t2").unlink()
    (tmp_path / "t/snapshot/snapshot-2").unlink(missing_ok=True)
    assert copy.process().check(copy.table).sound
