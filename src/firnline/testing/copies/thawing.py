"""The contract of Thaw: what can be read is told, and asking for it twice does no harm."""

from __future__ import annotations

import pickle

import pytest

from firnline.errors import ObjectNotFound, PermanentStoreError
from firnline.model.locations import join
from firnline.ports.thawing import Thaw, Warmth
from firnline.testing.stores import SideDoor

SPEEDS = ("bulk", "standard", "expedited")


class ThawContract(SideDoor):
    """The contract of Thaw on objects that can be read at any time, which every store has."""

    @pytest.fixture
    def thaw(self) -> Thaw:
        raise NotImplementedError

    def test_what_is_not_archived_can_be_read(self, thaw: Thaw, root: str) -> None:
        for name in self.awkward:
            self.raw_put(key := join(root, name), b"x")
            assert thaw.warmth(key) is Warmth.READABLE
        for speed in SPEEDS:
            thaw.request(key, 1, speed)
        assert thaw.warmth(key) is Warmth.READABLE
        assert self.raw_get(key) == b"x"

    def test_what_is_missing_is_told(self, thaw: Thaw, root: str) -> None:
        self.raw_put(join(root, "x"), b"x")
        with pytest.raises(ObjectNotFound):
            thaw.warmth(join(root, "missing"))

    def test_travels_in_a_pickle(self, thaw: Thaw, root: str) -> None:
        self.raw_put(join(root, "x"), b"x")
        assert pickle.loads(pickle.dumps(thaw)).warmth(join(root, "x")) is Warmth.READABLE


class ArchiveThawContract(ThawContract):
    """The same on a store that has archive classes."""

    def frozen(self, key: str, storage_class: str) -> None:
        """Puts an object there that must be asked for."""
        raise NotImplementedError

    def wait(self) -> None:
        """Waits until what was asked for has come."""
        raise NotImplementedError

    @pytest.mark.parametrize("storage_class", ["GLACIER", "DEEP_ARCHIVE"])
    def test_what_is_frozen_comes_after_a_while(self, thaw: Thaw, root: str, storage_class: str) -> None:
        self.frozen(key := join(root, "x"), storage_class)
        assert thaw.warmth(key) is Warmth.FROZEN
        with pytest.raises(KeyError):
            self.raw_get(key)
        thaw.request(key, 2, "bulk")
        assert thaw.warmth(key) is Warmth.UNDER_WAY
        thaw.request(key, 2, "standard")
        assert thaw.warmth(key) is Warmth.UNDER_WAY
        with pytest.raises(KeyError):
            self.raw_get(key)
        self.wait()
        assert thaw.warmth(key) is Warmth.READABLE
        assert self.raw_get(key)
        thaw.request(key, 9, "bulk")
        assert thaw.warmth(key) is Warmth.READABLE

    def test_a_speed_that_the_class_does_not_know_is_told(self, thaw: Thaw, root: str) -> None:
        self.frozen(deep := join(root, "deep"), "DEEP_ARCHIVE")
        for speed in ("expedited", "at once", ""):
            with pytest.raises(PermanentStoreError) as told:
                thaw.request(deep, 1, speed)
            assert told.value.hint == "its class knows bulk, standard"
            assert thaw.warmth(deep) is Warmth.FROZEN

    def test_asking_for_what_is_missing_is_told(self, thaw: Thaw, root: str) -> None:
        with pytest.raises(ObjectNotFound):
            thaw.request(join(root, "missing"), 1, "bulk")
