"""When a Spark session is worth its start: by all of the work, and by the cores of this machine."""

from __future__ import annotations

import pytest

from firnline.app.engines import Engines, pays

LAKE = (1_000 * 100, 1_000 * 1_000)
"""Snapshots and files of a thousand tables."""


@pytest.mark.parametrize(("cores", "is_worth_it"), [(1, False), (2, False), (8, True), (32, True)])
def test_a_lake_is_weighed_against_the_start_of_a_session(cores: int, is_worth_it: bool) -> None:
    assert pays(*LAKE, cores) is is_worth_it
    assert not pays(100, 1_000, cores)


def test_the_first_tables_stand_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    engines = Engines()
    (engine,) = engines.choose_together([("auto", "file:///t", 100, 1_000)], of_all=1_000)
    assert (engine.name, engines.spreads) == ("local", False)
