"""Lakes with several tables for the search of orphans."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firnline.plans.orphans import OrphanPlan
from harness.crowds import Crowd

Purge = Callable[..., tuple[OrphanPlan, Any]]


@pytest.fixture
def crowd(tmp_path: Path) -> Crowd:
    return Crowd.make(tmp_path)


@pytest.fixture
def purge(crowd: Crowd) -> Purge:
    """Searches a table or a folder and purges at once what it finds."""

    def act(table: str, **asked: Any) -> tuple[OrphanPlan, Any]:
        named = table if "/" in table else crowd.name(table)
        return crowd.process().orphans(named, grace="0s", consent=lambda plan: True, **asked)

    return act
