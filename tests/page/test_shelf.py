"""Answers that are kept: each made once, and none kept that is older than what was done since."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread

import pytest
import requests

from firnline.errors import UsageError
from firnline.lake import open_lake
from firnline.web.serving.actions import PageActions
from firnline.web.serving.shelf import Shelf

from .conftest import TABLE, OpenPage


def test_however_many_ask_an_answer_is_made_once() -> None:
    shelf, go, made = Shelf[int](), Event(), []

    def make() -> int:
        made.append(1)
        go.wait(10)
        return len(made)

    with ThreadPoolExecutor(20) as askers:
        asked = [askers.submit(shelf.get, "t", make) for _ in range(20)]
        time.sleep(0.2)
        go.set()
        assert {each.result(10)[0] for each in asked} == {1}
    assert len(made) == 1


def test_only_some_answers_are_made_at_once() -> None:
    shelf, go, begun = Shelf[int](), Event(), []

    def make() -> int:
        begun.append(1)
        go.wait(10)
        return 0

    with ThreadPoolExecutor(20) as askers:
        asked = [askers.submit(shelf.get, f"t{number}", make) for number in range(20)]
        time.sleep(0.2)
        assert 1 < len(begun) < 8
        go.set()
        assert [each.result(10)[0] for each in asked] == [0] * 20


def test_a_refresh_under_way_does_not_bring_back_what_was_forgotten() -> None:
    now, going, go = [0.0], Event(), Event()
    shelf = Shelf[str](fresh_s=1.0, clock=lambda: now[0])

    def slow() -> str:
        going.set()
        go.wait(10)
        return "as it was before"

    assert shelf.get("t\n", lambda: "first") == ("first", 0.0)
    now[0] = 2.0
    assert shelf.get("t\n", slow) == ("first", 2.0), "an old one is shown while it is made anew"
    assert going.wait(10)
    shelf.forget("t\n")
    assert shelf.get("t\n", lambda: "after") == ("after", 0.0), "who asks now does not wait for the old one"
    go.set()
    shelf._makers.shutdown(wait=True)
    assert shelf._entries["t\n"].value == "after"


def test_what_could_not_be_made_is_told_to_all_and_tried_again() -> None:
    shelf, go = Shelf[int](), Event()

    def fails() -> int:
        go.wait(10)
        raise UsageError("no")

    with ThreadPoolExecutor(3) as askers:
        asked = [askers.submit(shelf.get, "t", fails) for _ in range(3)]
        go.set()
        for each in asked:
            with pytest.raises(UsageError):
                each.result(10)
    assert shelf.get("t", lambda: 1)[0] == 1


def test_a_run_that_goes_no_further_says_that_its_table_changed(page: OpenPage) -> None:
    told: list[str] = []
    actions = PageActions(open_lake, told.append)
    run = actions.plan(TABLE, "ann")
    actions.approve(run, "ann")
    deadline = time.monotonic() + 30
    while not told and time.monotonic() < deadline:
        time.sleep(0.05)
    assert told == [TABLE]
    assert not actions.at_work
    assert open_lake().run(run).state.value == "committed"


def test_a_table_page_after_a_run_is_not_the_one_of_before(page: OpenPage) -> None:
    csrf = page.log_in()
    run = page.call("/api/do/plan", table=TABLE, by="ann").json()["run"]
    page.post("/do/approve", {"run": run, "csrf": csrf})
    deadline = time.monotonic() + 20
    while page.facts("/api/table", name=TABLE)["runs"]["runs"][0]["state"] != "committed":
        assert time.monotonic() < deadline, "it would be shown for half a minute as it was while it was carried out"
        time.sleep(0.1)


def test_the_process_is_alive_while_all_threads_wait(page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    go = Event()
    monkeypatch.setattr("firnline.web.serving.answers.table_report", lambda *of, **more: go.wait(20))

    def ask() -> None:
        requests.get(f"{page.address}/api/table", {"name": TABLE}, timeout=30)

    askers = [Thread(target=ask, daemon=True) for _ in range(45)]
    for each in askers:
        each.start()
    time.sleep(1)
    try:
        assert requests.get(f"{page.address}/healthz", timeout=5).json() == {"ok": True}
    finally:
        go.set()
        for each in askers:
            each.join(10)
