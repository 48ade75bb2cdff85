"""Draws what the terminal and a notebook show of a fresh lake of the demo: `make pictures` puts it into docs/pictures.

Each picture is of a command that really ran, on a terminal of its own: colours and widths are what people see.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from demo.lake import build

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
WIDTH = 112
REGISTRY, TELEMETRY = "lake.artemis.registry", "lake.artemis.telemetry"
LIVED = (
    f"expire {REGISTRY} --yes",
    f"undo {REGISTRY}",
    f"expire {TELEMETRY} --yes --at-most 10% --grace 0s",
    f"expire {TELEMETRY} --yes",
)
"""What happens in the lake first, by the demo's policy, so that there are runs to show."""
POLICY = "keep: {last: 8, weekly: 4, tags: ['monthly-*']}\n"
"""The stricter one that it has then: of the many reasons to stay, several are seen."""
SHOWN = {
    "terminal-lake": "firnline plan --all",
    "terminal-plan": f"firnline plan {REGISTRY}",
    "terminal-refused": f"firnline plan {REGISTRY} --blast-radius 50%",
    "terminal-runs": "firnline runs",
    "terminal-why": f"firnline why {REGISTRY} main",
}
NOTEBOOK = """
import firnline
lake = firnline.open()
views = [lake.plan("lake.artemis.registry"), lake.tables(), lake.runs("lake.artemis.registry"),
         lake.history("lake.artemis.registry")]
print("".join(f"<section>{view._repr_html_()}</section>" for view in views))
"""
STYLE = "body{font:14px system-ui,sans-serif;margin:24px;max-width:1000px} section{margin-bottom:32px}"


def environment(lake: Path) -> dict[str, str]:
    path = f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}"
    homes = {"PYICEBERG_HOME": lake, "XDG_CONFIG_HOME": lake / "c", "XDG_CACHE_HOME": lake / "d"}
    shown = {"TERM": "xterm-256color", "COLUMNS": str(WIDTH), "PATH": path}
    return {**os.environ, **shown, **{name: str(folder) for name, folder in homes.items()}}


def on_a_terminal(command: str, lake: Path) -> str:
    """Returns all that a command writes to a terminal, with its colours. Raises SystemExit where it fails."""
    outer, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 60, WIDTH, 0, 0))
    running = subprocess.Popen(
        command.split(), cwd=lake, env=environment(lake), stdin=inner, stdout=inner, stderr=inner
    )
    os.close(inner)
    written = bytearray()
    try:
        while piece := os.read(outer, 65_536):
            written += piece
    except OSError:  # the other end was closed: the command has ended
        pass
    if running.wait():
        raise SystemExit(f"{command}: {written.decode()}")
    return written.decode()


def drawn(command: str, written: str) -> str:
    """Returns the picture: an SVG that fetches nothing, with the command above what it said."""
    console = Console(record=True, width=WIDTH, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115
    console.print(Text(f"$ {command}", style="bold"))
    console.print(Text.from_ansi(settled(written)))
    svg = console.export_svg(title="firnline", theme=MONOKAI, unique_id="firnline")
    whole = re.sub(r"@font-face \{.*?\}|<!-- .*? -->", "", svg, flags=re.DOTALL)  # they name a font on a server
    return "\n".join(line.rstrip() for line in whole.splitlines() if line.strip())


def settled(written: str) -> str:
    """Returns what is left on the terminal in the end: a line that was written again is there once."""
    lines = (line.rsplit("\r", 1)[-1] for line in written.replace("\r\n", "\n").split("\n"))
    return "\n".join(line for line in lines if not line.startswith("\x1b[2K")).strip("\n")


def notebook(lake: Path) -> None:
    """Lets a browser draw what a notebook shows. Raises SystemExit where there is no Chromium."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        raise SystemExit("no Chromium here: the notebook was not drawn")
    asked = [str(ROOT / ".venv" / "bin" / "python"), "-c", NOTEBOOK]
    body = subprocess.run(asked, cwd=lake, env=environment(lake), check=True, capture_output=True, text=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        page.write_text(f"<!doctype html><meta charset=utf-8><style>{STYLE}</style>{body}")
        picture = f"--screenshot={PICTURES / 'notebook.png'}"
        subprocess.run(
            [browser, "--headless", "--no-sandbox", "--hide-scrollbars", "--window-size=1060,1500", picture, str(page)],
            check=True,
            capture_output=True,
        )


def main() -> int:
    PICTURES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        lake = Path(folder).resolve() / "lake"
        build(lake, time.time_ns() // 1_000_000)
        for each in LIVED:
            on_a_terminal(f"firnline {each}", lake)
        (lake / "firnline.yaml").write_text(POLICY)
        for name, command in SHOWN.items():
            (PICTURES / f"{name}.svg").write_text(drawn(command, on_a_terminal(command, lake)) + "\n")
        notebook(lake)
    return 0


if __name__ == "__main__":
    sys.exit(main())
