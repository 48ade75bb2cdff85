"""Runs with an audit log: each stage has its entry before it happens, or does not happen."""

from __future__ import annotations

import ast
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

import firnline
from observing.conftest import WatchedLake


def moves(watched: WatchedLake) -> list[tuple[str | None, str]]:
    said = [json.loads(path.read_bytes())["news"] for path in watched.entries]
    return [(each["from"], each["to"]) for each in said]


def test_every_stage_is_written_down_with_its_figures(watched: WatchedLake) -> None:
    code, facts, _ = watched.expire()
    assert code == 0
    assert moves(watched) == [
        ("planned", "committing"),
        ("committing", "committed"),
        ("committed", "purging"),
        ("purging", "done"),
    ]
    code, shown, _ = watched("audit", "show", "--run", facts["run"])
    last = shown["entries"][-1]
    assert last["news"]["figures"]["deleted_files"] == facts["outcomes"]["deleted"]["files"]
    assert last["news"]["run"] == facts["run"]
    assert last["who"]["process"] == str(os.getpid())
    assert {each["news"]["plan"] for each in shown["entries"]} == {shown["entries"][0]["news"]["plan"]}
    assert watched("audit", "verify")[:2] == (
        0,
        {"entries": 4, "end": watched("audit", "verify")[1]["end"], "sealed_from": None},
    )


def test_what_is_shown_is_of_the_table_the_run_and_the_time_that_were_asked_for(watched: WatchedLake) -> None:
    run = watched.expire("1h")[1]["run"]
    assert len(watched("audit", "show", "--table", watched.world.table)[1]["entries"]) == 2
    assert watched("audit", "show", "--table", "lake.ns.other")[1]["entries"] == []
    assert watched("audit", "show", "--run", f"{run}0")[1]["entries"] == []
    assert watched("audit", "show", "--since", "2999-01-01T00:00:00Z")[1]["entries"] == []
    assert len(watched("audit", "show", "--since", "2000-01-01T00:00:00Z")[1]["entries"]) == 2


def test_without_a_log_nothing_is_written_and_asking_for_it_says_so(watched: WatchedLake) -> None:
    watched.configure("")
    assert watched.expire()[0] == 0
    assert not watched.log.exists()
    code, _, err = watched("audit", "verify")
    assert (code, json.loads(err)["error"]["kind"]) == (2, "usage")


def refused(watched: WatchedLake, *arguments: str) -> dict[str, Any]:
    code, _, err = watched(*arguments)
    assert code == 14, err
    return dict(json.loads(err.strip().splitlines()[-1])["error"])


def block(log: Path) -> None:
    """Makes a file of what must be a folder: nothing can be written there, whoever asks."""
    log.rename(log.with_name("aside")) if log.exists() else None
    log.write_text("")


def unblock(log: Path) -> None:
    log.unlink()
    aside = log.with_name("aside")
    if aside.exists():
        aside.rename(log)


def test_a_commit_without_its_entry_is_refused(watched: WatchedLake) -> None:
    block(watched.log)
    before, files = watched.world.picture().document, watched.world.files()
    error = refused(watched, "expire", watched.world.table, "--grace", "0s", "--yes")
    assert "audit log" in error["message"]
    assert watched.world.picture().document == before
    assert watched.world.files() >= files
    unblock(watched.log)
    assert watched("resume", watched.world.table)[0] == 0
    assert moves(watched)[-1] == ("purging", "done")
    watched.world.check()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("verb", ["purge", "undo"])
def test_a_purge_or_an_undo_without_its_entry_is_refused(watched: WatchedLake, verb: str) -> None:
    code, facts, err = watched.expire("1s" if verb == "purge" else "1h")
    assert code == 0, err
    time.sleep(1.2 if verb == "purge" else 0)
    block(watched.log)
    before = watched.world.files()
    refused(watched, verb, facts["run"])
    assert watched.world.files() >= before
    unblock(watched.log)
    assert watched(verb, facts["run"])[0] == 0
    assert moves(watched)[-1][1] == ("done" if verb == "purge" else "undone")


def test_a_process_that_goes_on_with_a_purge_is_written_down_too(
    watched: WatchedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    from firnline.ops.runs import purge

    def crash(*given: Any) -> None:
        raise RuntimeError("killed here")

    with monkeypatch.context() as patched:
        patched.setattr(purge, "remove_emptied", crash)
        with pytest.raises(RuntimeError):
            watched.expire()
    assert watched("resume", watched.world.table)[0] == 0
    said = [json.loads(path.read_bytes())["news"] for path in watched.entries]
    assert [(each["to"], each["error"]) for each in said[2:]] == [
        ("purging", None),
        ("purging", "crash"),
        ("purging", None),
        ("done", None),
    ]
    assert watched("audit", "verify")[0] == 0


def test_no_run_moves_but_where_it_is_told() -> None:
    """`LeasedRun.moved` takes a state first; `Run.moved`, which tells nobody, takes a store."""
    source = Path(firnline.__file__).parent
    untold = [
        str(path.relative_to(source))
        for path in source.rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "moved"
        if not ast.unparse(call.args[0]).startswith("RunState.")
    ]
    assert untold == ["ops/runs/moving.py"]
