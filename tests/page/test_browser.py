"""The page in a real browser, headless: plan, look at the graph, approve, watch, undo, hold, release; by keyboard and
screen reader's rules, on a desk and on a phone.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from firnline.lake import open_lake
from firnline.testing.tables import SmallTable
from firnline.web.serving.gate import COOKIE

from .conftest import EVIL, TABLE, TOKEN, OpenPage

if TYPE_CHECKING:
    from playwright.sync_api import Page

CHROMIUM = shutil.which("chromium")
_MISSING = "NOT TESTED in a browser: it takes Debian's chromium (apt-get install chromium) and playwright"
if CHROMIUM is None or find_spec("playwright") is None:
    warnings.warn(_MISSING, stacklevel=1)
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None or find_spec("playwright") is None, reason=_MISSING),
    pytest.mark.slow,
]
SERIOUS = ("serious", "critical")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playing:
        browser = playing.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def window(chromium: Any) -> Iterator[Page]:
    """A window that fails the test for whatever its console says, and for whatever it asks of another place."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    shown = context.new_page()
    said: list[str] = []
    shown.on("console", lambda message: said.append(message.text))
    shown.on("pageerror", lambda problem: said.append(str(problem)))
    shown.on("dialog", lambda dialog: said.append("a dialog"))
    yield shown
    context.close()
    assert said == []


def assert_accessible(window: Page) -> None:
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(window).response["violations"]
    assert [(each["id"], each["nodes"][0]["html"]) for each in found if each["impact"] in SERIOUS] == []


def test_a_person_plans_looks_approves_watches_undoes_holds_and_releases(page: OpenPage, window: Page) -> None:
    from playwright.sync_api import expect

    window.goto(page.address)
    assert_accessible(window)
    window.get_by_role("link", name="log in").click()
    window.get_by_label("Your name").fill("Ann Auditor")
    window.get_by_label("Token").fill(TOKEN)
    assert_accessible(window)
    window.keyboard.press("Enter")
    window.get_by_role("link", name=TABLE).click()
    figures = window.locator("section#graph figure")
    assert figures.count() == 2
    assert EVIL in figures.first.inner_text()
    assert_accessible(window)
    window.get_by_role("button", name="plan a run").click()
    assert window.locator("dd").first.inner_text() == "planned"
    assert_accessible(window)
    window.get_by_label("Note").fill("looked at it")
    window.get_by_role("button", name="approve and carry out").click()
    expect(window.locator("#standing dd").first).to_have_text("committed", timeout=30_000)
    window.reload()
    (run,) = open_lake().runs(TABLE)
    assert run.run.approval is not None
    assert run.run.approval.detail["by"] == "Ann Auditor"
    window.get_by_role("button", name="undo").click()
    assert window.locator("dd").first.inner_text() == "undone"
    window.goto(f"{page.address}/table?name={TABLE}")
    window.get_by_label("Hold", exact=True).fill("case-7")
    window.get_by_label("Snapshot or ref").fill("main")
    window.get_by_label("Why").fill("court <b>order</b>")
    window.get_by_role("button", name="hold", exact=True).click()
    row = window.locator("section#holds tbody tr")
    assert "court <b>order</b>" in row.inner_text()
    assert "hold case-7 by Ann Auditor" in window.locator("section#graph figure").first.inner_text()
    assert_accessible(window)
    window.get_by_role("button", name="release case-7").click()
    assert window.get_by_text("no holds").count() == 1
    assert open_lake().holds(TABLE) == ()


@pytest.mark.full
def test_a_person_sees_a_purge_go_on(
    table: SmallTable, page: OpenPage, window: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store takes some deletes a second: the bar has other lengths before the last file is gone, without a click,
    although all of them are one part of the run's record. A call brings what three seconds allow, in place of twenty.
    """
    from playwright.sync_api import expect

    monkeypatch.setattr("firnline.app.engines._CALL_S", 3)

    table.append(500)
    table.overwrite(table.live())
    table.append(1)
    with sqlite3.connect("catalog.db") as database:
        database.execute("UPDATE iceberg_tables SET metadata_location = ?", (table.publish(),))
    database.close()
    slow = f"stores: {{{Path.cwd()}: {{deletes-per-second: 50}}}}"
    Path("firnline.yaml").write_text(f"audit: {Path.cwd()}/log\nblast-radius: 100%\ngrace: 0s\n{slow}\n")
    run = page.call("/api/do/plan", table=TABLE, by="ann").json()["run"]
    page.log_in()
    window.context.add_cookies([{"name": COOKIE, "value": page.browser.cookies[COOKIE], "url": page.address}])
    window.goto(f"{page.address}/run?id={quote(run)}")
    window.get_by_role("button", name="approve and carry out").click()
    state, bar, seen = window.locator("#standing dd").first, window.locator("#standing progress"), []
    until = time.monotonic() + 120
    while state.inner_text() != "done" and time.monotonic() < until:
        seen.append((state.inner_text(), float(bar.get_attribute("value") or 0)))
        window.wait_for_timeout(100)
    expect(state).to_have_text("done")
    moving = list(dict.fromkeys(value for said, value in seen if said == "purging"))
    last = float(bar.get_attribute("max") or 0)
    assert moving == sorted(moving), "it never goes back"
    assert len({each for each in moving if each < last}) >= 2, seen
    assert float(bar.get_attribute("value") or 0) == last


@pytest.mark.sampled(1)
@pytest.mark.parametrize("dark", [False, True])
def test_every_page_is_accessible_and_fits_a_phone(still: OpenPage, chromium: Any, dark: bool) -> None:
    context = chromium.new_context(viewport={"width": 390, "height": 800}, color_scheme="dark" if dark else "light")
    shown = context.new_page()
    paths = (f"/table?name={TABLE}", f"/plan?name={TABLE}", "/", "/runs", "/savings", f"/why?table={TABLE}&what=main")
    for path in paths if os.environ.get("FIRNLINE_FULL") else paths[:3]:
        shown.goto(f"{still.address}{path}")
        assert shown.evaluate("document.documentElement.scrollWidth") <= 390, path
        assert_accessible(shown)
    context.close()


def test_the_keyboard_reaches_what_there_is(still: OpenPage, window: Page) -> None:
    window.goto(still.address)
    window.keyboard.press("Tab")
    assert window.evaluate("document.activeElement.textContent") == "skip to the page"
    window.keyboard.press("Enter")
    assert window.evaluate("document.activeElement.id") == "main"
    reached = set()
    for _ in range(6):
        window.keyboard.press("Tab")
        reached.add(window.evaluate("document.activeElement.textContent"))
    assert TABLE in reached
