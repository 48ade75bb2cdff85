"""`firnline plan`: the JSON that other programs rely on, the lists of files, and the page that people read."""

from __future__ import annotations

import csv
import json
from typing import Any

import pyarrow.parquet
import pytest

from firnline.cli.main import run
from firnline.errors import UsageError
from firnline.model.times import format_instant
from firnline.ops.looking.files import write_listing

Lake = Any


def plan(capsys: pytest.CaptureFixture[str], lake: Lake, *options: str) -> Any:
    """Returns the JSON of a plan, made at the moment of the last commit."""
    assert run(["plan", "lake.ns.events", "--now", str(lake.events.now_ms), "--json", *options]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    return json.loads(shown.out)


def test_the_json_has_the_keys_and_types_of_the_contract(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    said = plan(capsys, lake)
    types = {
        "table": str, "format": str, "fence": str, "now": str, "keep": list, "expire": list, "expire_refs": list,
        "victims": dict, "spared": dict, "refused": type(None),
    }  # fmt: skip
    assert {name: type(said[name]) for name in types} == types
    assert (said["table"], said["format"]) == ("lake.ns.events", "iceberg")
    assert said["fence"] == lake.events.documents[-1]
    assert said["now"] == format_instant(lake.events.now_ms)
    for kept in said["keep"]:
        assert {name: type(value) for name, value in kept.items() if name in ("snapshot", "refs", "reasons")} == {
            "snapshot": str,
            "refs": list,
            "reasons": list,
        }
        assert kept["reasons"]
        assert all(isinstance(reason, str) for reason in kept["reasons"])
    for totals in (said["victims"], *said["victims"]["by_kind"].values(), *said["spared"].values()):
        assert {type(totals[name]) for name in ("files", "bytes")} == {int}


def test_every_snapshot_is_kept_or_expired_and_its_id_is_a_text(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    said = plan(capsys, lake)
    kept = [each["snapshot"] for each in said["keep"]]
    assert sorted(kept + said["expire"]) == [str(snapshot) for snapshot in lake.events.changes]
    assert said["expire"]
    assert {each["snapshot"]: each["refs"] for each in said["keep"] if each["refs"]} == {
        str(lake.events.head()): ["main"],
        str(lake.events.heads["release"]["snapshot-id"]): ["release"],
    }


def test_the_totals_are_what_only_expired_snapshots_need(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    said = plan(capsys, lake, "--include-outside")
    victims = lake.events.victims([int(snapshot) for snapshot in said["expire"]])
    sizes = {path: lake.events.made[path] for path in victims}
    assert said["victims"]["files"] == len(victims)
    assert said["victims"]["bytes"] == sum(made.size for made in sizes.values())
    assert {kind: each["files"] for kind, each in said["victims"]["by_kind"].items()} == {
        kind.value: sum(made.kind is kind for made in sizes.values())
        for kind in dict.fromkeys(made.kind for made in sizes.values())
    }
    for name in ("files", "bytes"):
        assert sum(each[name] for each in said["victims"]["by_kind"].values()) == said["victims"][name]


def test_an_expired_ref_is_named(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    lake.events.tag("old", lake.events.heads["release"]["snapshot-id"], max_ref_age_ms=1)
    lake.publish()
    assert plan(capsys, lake)["expire_refs"] == ["old"]


def test_what_a_run_would_refuse_is_said(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    lake.policy("keep: {last: 1}\nblast-radius: 1%\n")
    assert "the cap is 1%" in plan(capsys, lake)["refused"]


def test_where_nothing_expires_nothing_is_walked(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    said = plan(capsys, lake, "--keep-within", "99d")
    assert (said["expire"], said["victims"]["files"], said["kept"], said["units_opened"]) == ([], 0, None, 0)


def test_older_than_and_retain_last_replace_the_tables_own_defaults(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    ids = [str(snapshot) for snapshot in lake.events.changes]
    tagged = str(lake.events.heads["release"]["snapshot-id"])
    fifth = lake.events.changes[int(ids[4])].timestamp_ms
    by_age = plan(capsys, lake, "--older-than", format_instant(fifth))
    assert by_age["expire"] == [each for each in ids[:4] if each != tagged], "a snapshot exactly at the instant stays"
    assert plan(capsys, lake, "--older-than", str(fifth + 1))["expire"] == [each for each in ids[:5] if each != tagged]
    by_number = plan(capsys, lake, "--older-than", str(lake.events.now_ms + 1), "--retain-last", "7")
    assert by_number["expire"] == ids[:1]


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_a_list_of_files_has_exactly_the_victims(lake: Lake, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = lake.folder / f"gone.{form}"
    said = plan(capsys, lake, "--include-outside", "--files", str(out))
    if form == "parquet":
        rows = pyarrow.parquet.read_table(out).to_pylist()
    else:
        with out.open(newline="") as lines:
            rows = [{**row, "size": int(row["size"])} for row in csv.DictReader(lines)]
    made = lake.events.made
    victims = lake.events.victims([int(snapshot) for snapshot in said["expire"]])
    expected = [{"path": path, "kind": made[path].kind.value, "size": made[path].size} for path in sorted(victims)]
    assert sorted(rows, key=lambda row: row["path"]) == expected
    assert expected


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_a_list_of_no_files_is_a_list(lake: Lake, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = lake.folder / f"gone.{form}"
    plan(capsys, lake, "--keep-within", "99d", "--files", str(out))
    if form == "parquet":
        assert pyarrow.parquet.read_table(out).column_names == ["path", "kind", "size"]
    else:
        assert out.read_text().replace('"', "").split() == ["path,kind,size"]


def test_a_list_of_files_replaces_an_earlier_list_and_nothing_else(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    out = lake.folder / "gone.parquet"
    plan(capsys, lake, "--keep-within", "99d", "--files", str(out))
    plan(capsys, lake, "--include-outside", "--files", str(out))
    assert len(pyarrow.parquet.read_table(out))
    (lake.folder / "folder.csv").mkdir()
    live = next(str(lake.path(path)) for path in lake.events.live() if path.endswith(".parquet"))
    before = lake.everything()
    for taken in (live, str(lake.folder / "folder.csv")):
        assert run(["plan", "lake.ns.events", "--files", taken]) == 2
        assert taken in capsys.readouterr().err
        after = lake.everything()
        assert {path: what for path, (what, _) in after.items()} == {path: what for path, (what, _) in before.items()}


def test_a_list_of_files_is_never_written_into_the_table(lake: Lake) -> None:
    out = lake.path(lake.events.location) / "new.csv"
    with pytest.raises(UsageError, match="inside the table"):
        write_listing(None, out, owned=[lake.events.location])
    assert run(["plan", "lake.ns.events", "--files", str(out)]) == UsageError.exit_code
    assert not out.exists()


def test_a_table_is_the_same_by_its_location(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    by_name = plan(capsys, lake)
    for location in (
        lake.events.location,
        str(lake.path(lake.events.location)),
        "./ns/events",
        lake.events.documents[-1],
    ):
        assert run(["plan", location, "--now", str(lake.events.now_ms), "--json"]) == 0
        said = json.loads(capsys.readouterr().out)
        assert {name: said[name] for name in ("expire", "victims", "uuid")} == {
            name: by_name[name] for name in ("expire", "victims", "uuid")
        }


def test_the_page_says_what_the_json_says(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    said = plan(capsys, lake)
    assert run(["plan", "lake.ns.events", "--now", str(lake.events.now_ms)]) == 0
    page = capsys.readouterr().out
    assert page.startswith("lake.ns.events (iceberg), 8 snapshots, 2 refs\n")
    assert all(each["snapshot"] in page for each in said["keep"])
    assert f"keep {len(said['keep'])}" in page
    assert f"expire {len(said['expire'])}" in page
    assert f"would then purge: {said['victims']['files']:,} file" in page
    assert "nothing was changed" in page


def test_long_lists_are_cut_unless_everything_is_asked_for(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(30):
        lake.events.append()
    lake.publish()
    arguments = ["plan", "lake.ns.events", "--now", str(lake.events.now_ms), "--keep-within", "25d"]
    assert run(arguments) == 0
    short = capsys.readouterr().out
    assert "… and 7 older (--list shows them)" in short
    assert run([*arguments, "--list"]) == 0
    long = capsys.readouterr().out
    assert all(str(snapshot) in long for snapshot in lake.events.changes)
    assert sum(str(snapshot) in short for snapshot in lake.events.changes) == 20


def test_a_flag_beats_the_configured_engine(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    lake.policy("engine: spark\n")
    assert plan(capsys, lake, "--engine", "local")["engine"] == "local"


@pytest.mark.parametrize("summary", [None, [], "x", {}, {"total-data-files": None}, {"total-data-files": "²"}])
def test_a_strange_summary_is_no_reason_to_fail(lake: Lake, summary: Any, capsys: pytest.CaptureFixture[str]) -> None:
    lake.publish(edit=lambda document: document["snapshots"][0].update(summary=summary))
    assert plan(capsys, lake)["engine"] == "local"


@pytest.mark.parametrize("share", ["0%", "101%", "0.9", "٩٠%", "1.%", "-5%"])
def test_a_share_is_read_as_in_a_policy_file(lake: Lake, capsys: pytest.CaptureFixture[str], share: str) -> None:
    assert run(["plan", "lake.ns.events", f"--blast-radius={share}"]) == 2
    assert "share of the table" in capsys.readouterr().err
    lake.policy(f"blast-radius: {share}\n")
    assert run(["policy", "check"]) == 2
