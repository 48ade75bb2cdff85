"""Every example of the guides runs and prints what its page shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from firnline.formats.icechunk.clocks import Disagreement
from firnline.lake import open_lake
from firnline.ports.observing.news import News
from tests.readers.written import WrittenCheckpoint

from .pages import GUIDES, ROOT, blocks
from .shell import CUT, Example, Shell, examples, shape

README = ROOT / "README.md"
PYTHON = ROOT / "docs" / "guides" / "python.md"
ICECHUNK = ROOT / "docs" / "guides" / "icechunk.md"
POINTERS = ROOT / "docs" / "guides" / "pointers.md"
TIERS = ROOT / "docs" / "guides" / "tiers.md"
READERS = ROOT / "docs" / "guides" / "streaming-readers.md"
ERASURE = ROOT / "docs" / "guides" / "erasure.md"
WORKER = ROOT / "docs" / "guides" / "worker.md"
OBSERVING = ROOT / "docs" / "guides" / "observing.md"
OTHERWISE = (POINTERS, TIERS, ERASURE, OBSERVING, READERS, WORKER)
SHELL_GUIDES = [guide for guide in GUIDES if blocks(guide, "console") and guide not in OTHERWISE]


@pytest.mark.parametrize("guide", [README, *SHELL_GUIDES], ids=lambda path: path.stem)
def test_shell_examples_print_what_the_page_shows(
    guide: Path, small_lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shell = Shell(small_lake, capsys)
    shown = [example for block in blocks(guide, "console") for example in examples(block)]
    for example in shown:
        shell.run(example)
    assert len(shown) >= 5


def test_pointers_are_published_where_the_policy_of_the_page_asks(
    small_lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (policy, *_) = blocks(POINTERS, "yaml")
    Path("firnline.yaml").write_text(policy)
    for block in blocks(POINTERS, "console"):
        for example in examples(block):
            Shell(small_lake, capsys).run(example)


def test_history_is_handed_to_the_tier_of_the_page(
    small_lake: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__COLD__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__COLD__URI", f"sqlite:///{small_lake}/cold.db")
    (policy, *_) = blocks(TIERS, "yaml")
    tiers = policy.partition("catalogs:")[0].replace("s3://company-cold/lake", f"file://{small_lake}/colder")
    Path("firnline.yaml").write_text(Path("firnline.yaml").read_text() + tiers)
    for block in blocks(TIERS, "console"):
        for example in examples(block):
            Shell(small_lake, capsys).run(example)


def test_a_reader_keeps_what_the_page_shows(small_lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state, _ = open_lake().policy("lake.artemis.telemetry")
    stands_at = int([each.id for each in state.graph.lineage(str(state.current))][2])
    WrittenCheckpoint(small_lake / "checkpoints" / "alerts").begin(stands_at).batch(0, stands_at)
    (policy, *_) = blocks(READERS, "yaml")
    here = policy.replace("/srv/jobs", str(small_lake))
    Path("firnline.yaml").write_text(Path("firnline.yaml").read_text() + here)
    for block in blocks(READERS, "console"):
        for example in examples(block.replace("/srv/jobs", str(small_lake))):
            Shell(small_lake, capsys).run(example)


def test_runs_are_told_of_as_the_page_shows(
    small_lake: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "ann")
    monkeypatch.setattr("socket.gethostname", lambda: "worker-1")
    (line,) = blocks(OBSERVING, "json")
    (program,) = blocks(OBSERVING, "python")
    (setting,) = blocks(OBSERVING, "yaml")
    placed = setting.replace("s3://company-audit/firnline", f"{small_lake}/audit")
    Path("firnline.yaml").write_text(Path("firnline.yaml").read_text() + placed)
    for block in blocks(OBSERVING, "console"):
        for example in examples(block):
            Shell(small_lake, capsys).run(example)
    told = News("r", "t", "expiry", "purging", "done", 1)
    assert list(json.loads(line)) == ["level", "event", *told.to_json()]
    exec(compile(program.replace("9464", "0"), str(OBSERVING), "exec"), {})
    assert "/metrics" in capsys.readouterr().out


def test_a_file_is_erased_as_the_page_shows(small_lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shell = Shell(small_lake, capsys)
    for block in blocks(ERASURE, "console"):
        for example in examples(block):
            shell.run(example)


def test_a_worker_does_a_round_as_the_page_shows(
    small_lake: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(small_lake / "own"))
    (policy, *_) = blocks(WORKER, "yaml")
    always = policy.replace("22:00-06:00 Europe/Berlin", "always")
    Path("firnline.yaml").write_text("blast-radius: 100%\n" + always)
    for block in blocks(WORKER, "console"):
        for example in examples(block):
            Shell(small_lake, capsys).run(example)


def test_python_examples_run_in_order(small_lake: Path) -> None:
    names: dict[str, Any] = {}
    for number, block in enumerate(blocks(PYTHON, "python"), 1):
        exec(compile(block, f"{PYTHON.name}, block {number}", "exec"), names)
    assert names["undone"].state == "undone"
    assert (small_lake / "going.parquet").is_file()


def test_python_examples_of_icechunk_run_in_order(tmp_path: Path, inside: pytest.MonkeyPatch) -> None:
    inside.chdir(tmp_path)
    inside.setenv("PYICEBERG_HOME", str(tmp_path))
    names: dict[str, Any] = {}
    for number, block in enumerate(blocks(ICECHUNK, "python"), 1):
        exec(compile(block, f"{ICECHUNK.name}, block {number}", "exec"), names)
    assert names["repository"].lookup_branch("main") == names["snapshot"]


def test_a_wrong_time_is_told_as_the_page_shows_it() -> None:
    said_us, minute_us = 1_787_389_200_000_000, 60_000_000
    slow = Disagreement("a", said_us, said_us + 60 * minute_us)
    child = Disagreement("a", said_us, said_us + 2 * minute_us, "VY76P925PRY57WFEK410")
    assert f"{slow.problem}\n{child.problem}\n" in blocks(ICECHUNK, "text")


def test_a_block_is_split_into_commands_with_their_output_and_exit_code() -> None:
    block = "$ firnline a\none\n\ntwo\n$ firnline b\nno\n$ echo $?\n14\n"
    assert list(examples(block)) == [
        Example("firnline a", ["one", "", "two"], 0),
        Example("firnline b", ["no"], 14),
    ]


def test_shapes_differ_in_words_only() -> None:
    assert shape("  data   23  638.1 KiB") == shape("data 5 1.0 MiB")
    assert shape("t@20261115T032035Z-7db52a: done") == shape("t@20270101T000000Z-abcdef: done")
    assert shape("keep 44") != shape("expire 44")


@pytest.mark.parametrize("shown", [["no such line"], ["  lake.artemis.config"], [CUT, "  lake.artemis.nothing", CUT]])
def test_an_example_that_shows_something_else_fails(
    shown: list[str], tiny_lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(AssertionError, match="the page"):
        Shell(tiny_lake, capsys).run(Example("firnline tables", shown, 0))


def test_an_example_with_another_exit_code_fails(tiny_lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AssertionError, match="exit code 0"):
        Shell(tiny_lake, capsys).run(Example("firnline tables", [], 14))
