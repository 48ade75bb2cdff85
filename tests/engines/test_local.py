"""The local engine keeps the contract of every engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from firnline.local.engine import LocalEngine
from firnline.ports.engines import Engine, ListingTooLarge
from firnline.ports.listings import KeyRange
from firnline.stores.ranges import ObjectRanges
from firnline.testing.after_survey.looking import LookingContract
from firnline.testing.after_survey.reached import ReachedContract
from firnline.testing.engines import EngineContract
from firnline.testing.engines_census import CensusContract
from firnline.testing.lakes.censuses import CensusesContract
from firnline.testing.lakes.engines import TogetherContract


class TestLocalEngine(
    EngineContract, TogetherContract, CensusContract, CensusesContract, LookingContract, ReachedContract
):
    @pytest.fixture
    def engine(self) -> Engine:
        return LocalEngine()


def test_more_than_one_machine_should_hold_is_refused(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).write_bytes(b"")
    piece = KeyRange(str(tmp_path))
    assert LocalEngine(most_listed=3).list([piece], ObjectRanges()).all.files == 3
    with pytest.raises(ListingTooLarge, match="more than 2 objects"):
        LocalEngine(most_listed=2).list([piece], ObjectRanges())
