"""Running a measured process: what it prints, when, and the most memory that each part of it took."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

HERE = Path(__file__).resolve().parent
MIB = 1 << 20


@dataclass
class Memory:
    """The most that was resident at once: of the driver's Python, the JVM, all Python workers together."""

    peaks: dict[str, int] = field(default_factory=lambda: {"driver": 0, "jvm": 0, "workers": 0})

    def look(self, pid: int) -> None:
        now = dict.fromkeys(self.peaks, 0)
        for role, size in _resident(pid):
            now[role] += size
        self.peaks = {role: max(peak, now[role]) for role, peak in self.peaks.items()}

    def as_mib(self) -> dict[str, int]:
        return {role: round(peak / MIB) for role, peak in self.peaks.items()}


def _resident(pid: int) -> Iterator[tuple[str, int]]:
    try:
        process = psutil.Process(pid)
        yield "driver", process.memory_info().rss
        for each in process.children(recursive=True):
            yield ("jvm" if each.name().startswith("java") else "workers"), _own_bytes(each)
    except psutil.NoSuchProcess:
        return


def _own_bytes(process: psutil.Process) -> int:
    """What a process holds; of a forked worker only what it does not share."""
    try:
        return int(process.memory_full_info().uss if "python" in process.name() else process.memory_info().rss)
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return 0


def measured(
    *arguments: object, environment: Mapping[str, str] | None = None, program: str = "child.py"
) -> dict[str, Any]:
    """What the child told: its session, and each round of work. `cold_s`: from its start to its first result."""
    command = [sys.executable, str(HERE / program), *map(str, arguments)]
    told = {"PYTHONPATH": str(HERE.parent), "FIRNLINE_CACHE": "off", **(environment or {})}
    begun = time.perf_counter()
    child = subprocess.Popen(
        command, env={**os.environ, **told}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    memory = Memory()
    errors: list[str] = []
    watch = threading.Thread(target=_watch, args=(child, memory), daemon=True)
    drain = threading.Thread(target=lambda: errors.extend(child.stderr or ()), daemon=True)
    watch.start()
    drain.start()
    lines = [(time.perf_counter() - begun, json.loads(line)) for line in child.stdout or () if line.startswith("{")]
    if child.wait():
        raise RuntimeError("".join(errors)[-4000:])
    (_, session), (first_at, first), *later = lines
    rounds = [first, *(told for _, told in later)]
    cold = round(first_at - first.pop("after_s"), 2)
    return {**session, "cold_s": cold, "warm_s": rounds[-1]["seconds"], "rounds": rounds, "rss_mib": memory.as_mib()}


def _watch(child: subprocess.Popen[str], memory: Memory) -> None:
    while child.poll() is None:
        memory.look(child.pid)
        time.sleep(0.25)


def machine() -> dict[str, Any]:
    """What the figures were taken on, and how busy it was."""
    model = next((line for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line), ":")
    return {
        "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "cores": os.cpu_count(),
        "cpu": model.partition(":")[2].strip(),
        "memory_gib": round(psutil.virtual_memory().total / (1 << 30)),
        "load": [round(each, 1) for each in os.getloadavg()],
    }
