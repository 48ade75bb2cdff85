"""Takes the pictures of the page that README and docs show: a fresh lake of the demo, a real browser.

.venv/bin/python scripts/pictures.py [FOLDER]     default: docs/pictures
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn

from demo.lake import build
from firnline.lake import open_lake
from firnline.web.serving.gate import Gate
from firnline.web.serving.index import LakeIndex
from firnline.web.serving.site import site_of

TOKEN, WHO = "of-the-pictures-alone", "Ann Auditor"
TELEMETRY, REGISTRY = "lake.artemis.telemetry", "lake.artemis.registry"
DESK, PHONE = {"width": 1360, "height": 860}, {"width": 390, "height": 844}


@contextmanager
def served() -> Iterator[str]:
    """Serves the page of the lake in this folder, with all tables looked at."""
    index = LakeIndex(lambda: open_lake(engine="local"))
    index.look()
    app = site_of(lambda: open_lake(engine="local"), index, Gate(TOKEN, is_open=True))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = server.force_exit = True
    thread.join(5)


def live_in(folder: Path) -> str:
    """Makes a lake of sixty days, of which some is held, some deleted, and some can be undone. Returns the run."""
    build(folder, time.time_ns() // 1_000_000)
    os.environ.update(PYICEBERG_HOME=str(folder), XDG_CONFIG_HOME=str(folder / "c"), XDG_CACHE_HOME=str(folder / "d"))
    os.chdir(folder)
    lake = open_lake(engine="local")
    lake.hold(TELEMETRY, "case-7", "experiment", why="asked for by the court", who=WHO)
    lake.expire(TELEMETRY, keep={"within": "30d", "daily": "40"}, grace="0s")
    run = lake.expire(REGISTRY, grace="1d")
    return str(getattr(run, "id", ""))


def take(browser: Any, address: str, run: str, out: Path) -> None:
    pages = {
        "tables": "/",
        "table": f"/table?name={TELEMETRY}",
        "run": f"/run?id={run}",
    }
    for width, size in (("desktop", DESK), ("phone", PHONE)):
        for tone in ("light", "dark") if width == "desktop" else ("light",):
            context = browser.new_context(viewport=size, color_scheme=tone)
            window = context.new_page()
            log_in(window, address)
            for name, path in pages.items():
                if tone == "dark" and name != "table":
                    continue
                window.goto(f"{address}{path}")
                window.screenshot(path=out / f"{name}-{width}{'-dark' if tone == 'dark' else ''}.png")
            context.close()


def log_in(window: Any, address: str) -> None:
    window.goto(f"{address}/login")
    window.get_by_label("Your name").fill(WHO)
    window.get_by_label("Token").fill(TOKEN)
    window.get_by_role("button", name="log in").click()


def main() -> int:
    chromium = shutil.which("chromium")
    if chromium is None:
        print("it takes Debian's chromium: apt-get install chromium", file=sys.stderr)
        return 1
    from playwright.sync_api import sync_playwright

    out = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1] / "docs" / "pictures").resolve()
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        run = live_in(Path(folder).resolve() / "lake")
        with served() as address, sync_playwright() as playing:
            browser = playing.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            take(browser, address, run, out)
            browser.close()
        os.chdir("/")
    for each in sorted(out.glob("*.png")):
        print(each.name, each.stat().st_size)
    return 0


if __name__ == "__main__":
    sys.exit(main())
