"""Where the time of some runs went, as one stacked bar each: stacks.py PROFILE.json PICTURE.svg."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

COLOURS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#bbb")
WIDTH = 640


def stacked(runs: Mapping[str, Mapping[str, float]]) -> str:
    """One bar for each run, cut into its phases; all on one scale."""
    phases = list(dict.fromkeys(phase for run in runs.values() for phase in run))
    longest = max(sum(run.values()) for run in runs.values())
    height = 50 * len(runs) + 20 * len(phases) + 20
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {height}" font-family="sans-serif" font-size="12">'
    ]
    out.append(f'<rect width="760" height="{height}" fill="#fff"/>')
    for place, (name, run) in enumerate(runs.items()):
        top, left = 50 * place + 18, 10.0
        out.append(f'<text x="10" y="{top}">{name}: {sum(run.values()):.1f} s</text>')
        for phase, colour in zip(phases, COLOURS, strict=False):
            width = WIDTH * run.get(phase, 0) / longest
            out.append(f'<rect x="{left:.1f}" y="{top + 6}" width="{width:.1f}" height="18" fill="{colour}"/>')
            left += width
    for place, (phase, colour) in enumerate(zip(phases, COLOURS, strict=False)):
        y = 50 * len(runs) + 20 * place + 10
        told = ", ".join(f"{run.get(phase, 0):.1f} s" for run in runs.values())
        out.append(f'<rect x="10" y="{y}" width="12" height="12" fill="{colour}"/>')
        out.append(f'<text x="28" y="{y + 11}">{phase}: {told}</text>')
    return "\n".join([*out, "</svg>", ""])


if __name__ == "__main__":
    profile, picture = map(Path, sys.argv[1:])
    picture.write_text(stacked(json.loads(profile.read_text())["runs"]))
