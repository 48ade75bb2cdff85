"""`firnline why`: what keeps a snapshot or a file, or why nothing does."""

from __future__ import annotations

import json
from typing import Any

import pytest

from firnline.app.stores import Stores
from firnline.cli.main import run
from firnline.stores.objects import ObjectStores
from firnline.testing.counting import Counting

Lake = Any


def why(capsys: pytest.CaptureFixture[str], lake: Lake, what: object, *options: str) -> Any:
    assert run(["why", "lake.ns.events", str(what), "--now", str(lake.events.now_ms), "--json", *options]) == 0
    return json.loads(capsys.readouterr().out)


def why_in_words(capsys: pytest.CaptureFixture[str], lake: Lake, what: object) -> str:
    assert run(["why", "lake.ns.events", str(what), "--now", str(lake.events.now_ms)]) == 0
    return capsys.readouterr().out


def test_a_kept_snapshot_has_its_reasons(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    head = lake.events.head()
    answer = why(capsys, lake, head)
    assert (answer["snapshot"], answer["kept"], answer["refs"]) == (str(head), True, ["main"])
    assert answer["reasons"]
    words = why_in_words(capsys, lake, head)
    assert words.startswith(f"snapshot {head} (main) of ")
    assert "stays, because:" in words
    assert all(reason in words for reason in answer["reasons"])


def test_an_expired_snapshot_has_what_does_not_keep_it(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    first = next(iter(lake.events.changes))
    answer = why(capsys, lake, first)
    assert (answer["kept"], answer["refs"]) == (False, [])
    assert any("too old" in reason for reason in answer["reasons"])
    assert "would expire, because nothing keeps it:" in why_in_words(capsys, lake, first)


def test_a_ref_stands_for_its_snapshot(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    tagged = lake.events.heads["release"]["snapshot-id"]
    by_name = why(capsys, lake, "release")
    assert by_name == why(capsys, lake, tagged)
    assert by_name["kept"]
    assert any("release" in reason for reason in by_name["reasons"])


def test_a_misspelt_ref_is_told_the_nearest(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["why", "lake.ns.events", "relase"]) == 2
    assert "hint: did you mean release?" in capsys.readouterr().err


def test_a_needed_file_has_every_snapshot_that_needs_it_newest_first(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in lake.events.made:
        who_needs = [each for each in reversed(lake.events.changes) if path in lake.events.reachable(each)]
        answer = why(capsys, lake, path)
        assert [each["snapshot"] for each in answer["needed_by"]] == [str(each) for each in who_needs]
        assert answer["kept"] == any(each["kept"] for each in answer["needed_by"])
        assert answer["file"] == path


def test_a_file_is_found_under_any_spelling(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    path = lake.events.live()[-1]
    bare = str(lake.path(path))
    for spelled in (bare, f"file:{bare}", f"file://localhost{bare}"):
        assert why(capsys, lake, spelled)["needed_by"] == why(capsys, lake, path)["needed_by"] != []


def test_a_file_that_only_expired_snapshots_need_is_not_kept(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    first = next(iter(lake.events.changes))
    answer = why(capsys, lake, lake.events.changes[first].manifest_list)
    assert not answer["kept"]
    assert [each["snapshot"] for each in answer["needed_by"]] == [str(first)]
    words = why_in_words(capsys, lake, lake.events.changes[first].manifest_list)
    assert "needed by 1 snapshot, of which stay: 0" in words
    assert "would expire" in words


def test_a_file_that_no_snapshot_needs_is_said_to_be_none_of_the_tables(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    stray = f"{lake.events.location}/data/stray.parquet"
    assert why(capsys, lake, stray) == {"table": "lake.ns.events", "file": stray, "kept": False, "needed_by": []}
    assert "nothing of lake.ns.events needs this file" in why_in_words(capsys, lake, stray)


def test_a_metadata_document_of_the_table_stays(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    path = lake.publish()
    answer = why(capsys, lake, path)
    assert (answer["kept"], answer["needed_by"], answer["reasons"]) == (True, [], ["the table's own metadata"])
    assert "stays: it is the table's own metadata" in why_in_words(capsys, lake, path)


def test_a_relative_path_is_of_this_folder_or_of_the_table(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    path = lake.events.live()[-1]
    inside = path.removeprefix(lake.events.location + "/")
    expected = why(capsys, lake, path)["needed_by"]
    assert expected
    for spelled in (inside, f"./{inside}", f"ns/events/{inside}", f"./ns/../ns/events/{inside}"):
        assert why(capsys, lake, spelled)["needed_by"] == expected
    assert why(capsys, lake, f"{lake.folder}/ns/../ns/events/{inside}")["needed_by"] == expected


@pytest.mark.parametrize("path", ["data/nothing.parquet", "file:///a/../b.parquet"])
def test_a_path_that_names_nothing_is_refused(lake: Lake, capsys: pytest.CaptureFixture[str], path: str) -> None:
    assert run(["why", "lake.ns.events", path]) == 2
    assert path in capsys.readouterr().err


def test_statistics_are_files_too(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    path = lake.events.statistics(lake.events.head())
    lake.publish()
    assert [each["snapshot"] for each in why(capsys, lake, path)["needed_by"]] == [str(lake.events.head())]


def test_each_unit_is_read_once_however_many_snapshots_share_it(
    lake: Lake, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    counting = Counting(ObjectStores())
    monkeypatch.setattr(Stores, "open", lambda stores, settings: counting)
    why(capsys, lake, lake.events.live()[0])
    units = {path for change in lake.events.changes.values() for path in change.units}
    assert {key: count for (_, key), count in counting.calls().items() if key in units} == dict.fromkeys(units, 1)
