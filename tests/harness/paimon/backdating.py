"""Gives a history of seconds the ages of hours and days, so that rules about time have something to decide."""

from __future__ import annotations

import json
import random
from datetime import datetime
from pathlib import Path
from typing import Any

from firnline.testing.dated import date
from harness.paimon.layout import document, roots

HOUR_MS = 3_600_000
_GAPS = (1, 60_000, HOUR_MS // 2, HOUR_MS, 5 * HOUR_MS, 30 * HOUR_MS)


def backdate(folder: Path, rng: random.Random, now: int) -> None:
    """Rewrites the times in snapshots, tags and changelogs; copies of one snapshot keep one time, order stays."""
    found = {root: document(root.path(folder)) for root in roots(folder)}
    commits = sorted(
        {(each["timeMillis"], each["id"], each["deltaManifestList"]) for each in found.values()}, reverse=True
    )
    times, at = {}, now - rng.choice(_GAPS)
    for _, _, delta in commits:
        times[delta] = at
        at -= rng.choice(_GAPS)
    for root, each in found.items():
        each["timeMillis"] = times[each["deltaManifestList"]]
        made = rng.randint(each["timeMillis"], now) if "tagCreateTime" in each else None
        if made is not None:
            each["tagCreateTime"] = _local(made)
        root.path(folder).write_text(json.dumps(each))
        if made is not None:
            date(root.path(folder), made)


def _local(time_ms: int) -> list[Any]:
    at = datetime.fromtimestamp(time_ms / 1000)
    return [at.year, at.month, at.day, at.hour, at.minute, at.second, at.microsecond * 1000]
