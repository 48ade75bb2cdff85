"""Figures for people: a table on the screen, JSON and a picture under docs/benchmarks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from parts.phases import PHASES

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "benchmarks"


@dataclass(frozen=True)
class Line:
    """One measured promise. `ratio` must reach `floor`; where `at_most` is set it must stay below instead."""

    work: str
    ours_s: float
    theirs_s: float
    floor: float
    at_most: bool = False

    @property
    def ratio(self) -> float:
        return round(self.ours_s / self.theirs_s if self.at_most else self.theirs_s / self.ours_s, 3)

    @property
    def holds(self) -> bool:
        return self.ratio <= self.floor if self.at_most else self.ratio >= self.floor

    def shown(self) -> str:
        sign = "≤" if self.at_most else "≥"
        verdict = "yes" if self.holds else "NO"
        figures = f"{self.ours_s:.1f} | {self.theirs_s:.1f} | {self.ratio:.2f} | {sign} {self.floor:g}"
        return f"| {self.work} | {figures} | {verdict} |"


def table(lines: Sequence[Line]) -> str:
    head = "| work | firnline, s | against, s | ratio | floor | holds |\n|---|---|---|---|---|---|"
    return "\n".join([head, *(line.shown() for line in lines)])


def rounds_table(told: Mapping[str, Mapping[str, Any]]) -> str:
    """Where the last round of each tool went, what it opened, and the most memory that its processes took."""
    head = f"| last round | s | {', s | '.join(PHASES)}, s | opened | MB read | driver, MiB | JVM | workers |"
    return "\n".join([head, "|---" * (head.count("|") - 1) + "|", *(_round(*each) for each in told.items())])


def _round(way: str, told: Mapping[str, Any]) -> str:
    last = told["rounds"][-1]
    phases = [last.get("phases", {}).get(phase, "") for phase in PHASES]
    read = f"{last['bytes_read'] / 1e6:,.0f}" if "bytes_read" in last else ""
    figures = [last["seconds"], *phases, last.get("objects_opened", ""), read, *told["rss_mib"].values()]
    return f"| {way} | " + " | ".join(map(str, figures)) + " |"


def save(name: str, lines: Sequence[Line], details: Mapping[str, Any]) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    rows = [{**asdict(line), "ratio": line.ratio, "holds": line.holds} for line in lines]
    (FOLDER / f"{name}.json").write_text(json.dumps({"lines": rows, **details}, indent=1) + "\n")
    (FOLDER / f"{name}.svg").write_text(bars(lines))


def bars(lines: Sequence[Line]) -> str:
    """Two bars for each line, ours above theirs, as SVG."""
    longest = max((max(line.ours_s, line.theirs_s) for line in lines), default=1.0)
    height = 30 + 54 * len(lines)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {height}" font-family="sans-serif" font-size="12">'
    ]
    out.append(f'<rect width="760" height="{height}" fill="#fff"/>')
    for place, line in enumerate(lines):
        top = 20 + 54 * place
        out.append(f'<text x="10" y="{top}">{line.work}</text>')
        for row, (seconds, colour) in enumerate(((line.ours_s, "#1f77b4"), (line.theirs_s, "#bbb"))):
            y, width = top + 6 + 18 * row, max(1.0, 600 * seconds / longest)
            out.append(f'<rect x="10" y="{y}" width="{width:.1f}" height="14" fill="{colour}"/>')
            out.append(f'<text x="{width + 16:.1f}" y="{y + 11}">{seconds:.1f} s</text>')
    return "\n".join([*out, "</svg>", ""])
