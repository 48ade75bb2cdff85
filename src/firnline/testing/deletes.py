"""What everything must do that deletes objects of a store: subclass the contract, and pytest runs it."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import ClassVar

import pytest

from firnline.errors import LeaseHeld
from firnline.model.locations import join
from firnline.ports.delete import Delete, Doomed, Fate
from firnline.testing.stores import SideDoor


class DeleteContract(SideDoor):
    """The contract of Delete."""

    folder_fates: ClassVar[frozenset[Fate]] = frozenset({Fate.FAILED})
    """What may become of a key that names a folder; DELETED only where the store never says that a key was missing."""

    gone: ClassVar[Fate] = Fate.MISSING
    """What the store says of a key that was not there: MISSING, or DELETED where it does not tell."""

    @pytest.fixture
    def deleter(self) -> Delete:
        raise NotImplementedError

    def etag(self, key: str) -> str:
        """Returns what the store says that tells this object from another of the same name."""
        raise NotImplementedError

    def test_deletes_the_literal_names_and_nothing_else(self, deleter: Delete, root: str) -> None:
        keys = [join(root, name) for name in self.awkward]
        for key in keys:
            self.raw_put(key, b"x")
        for key in keys:
            assert [outcome.fate for outcome in deleter.delete([Doomed(key)])] == [Fate.DELETED]
            assert self._there(keys) == keys[keys.index(key) + 1 :]

    def test_deletes_the_literal_names_together(self, deleter: Delete, root: str) -> None:
        keys = [join(root, name) for name in self.awkward]
        for key in [*keys, join(root, "stays")]:
            self.raw_put(key, b"x")
        outcomes = deleter.delete([Doomed(key) for key in keys])
        assert [(outcome.key, outcome.fate) for outcome in outcomes] == [(key, Fate.DELETED) for key in keys]
        assert self._there([*keys, join(root, "stays")]) == [join(root, "stays")]

    def test_many_keys_at_once(self, deleter: Delete, root: str) -> None:
        keys = [join(root, f"{number:04d}") for number in range(1_100)]
        for key in keys[::50]:
            self.raw_put(key, b"x")
        outcomes = deleter.delete([Doomed(key) for key in keys])
        assert [outcome.key for outcome in outcomes] == keys
        assert {outcome.fate for outcome in outcomes[::50]} == {Fate.DELETED}
        assert {outcome.fate for outcome in outcomes} == {Fate.DELETED, self.gone}
        assert self._there(keys[::50]) == []

    def test_one_outcome_per_key_in_order(self, deleter: Delete, root: str) -> None:
        self.raw_put(join(root, "a"), b"x")
        self.raw_put(join(root, "c"), b"x")
        keys = [join(root, name) for name in ("a", "b", "c", "a")]
        outcomes = deleter.delete([Doomed(key) for key in keys])
        assert [outcome.key for outcome in outcomes] == keys
        assert [outcome.fate for outcome in outcomes] == [Fate.DELETED, self.gone, Fate.DELETED, self.gone]

    def test_a_folder_stays(self, deleter: Delete, root: str) -> None:
        self.raw_put(join(root, "folder", "x"), b"x")
        for spelled in (join(root, "folder"), join(root, "folder") + "/"):
            assert deleter.delete([Doomed(spelled)])[0].fate in self.folder_fates
        assert self.raw_get(join(root, "folder", "x")) == b"x"

    def test_below_a_file_there_is_nothing(self, deleter: Delete, root: str) -> None:
        self.raw_put(join(root, "x"), b"x")
        assert deleter.delete([Doomed(join(root, "x", "y"))])[0].fate is self.gone
        assert self.raw_get(join(root, "x")) == b"x"

    def test_a_bad_key_fails_alone(self, deleter: Delete, root: str) -> None:
        self.raw_put(join(root, "x"), b"x")
        self.raw_put(join(root, "y"), b"y")
        bad = [join(root, "folder/../y"), "relative/y", "gopher://hole/y", ""]
        outcomes = deleter.delete([Doomed(key) for key in (*bad, join(root, "x"))])
        assert [outcome.fate for outcome in outcomes] == [Fate.FAILED] * 4 + [Fate.DELETED]
        assert all(outcome.error for outcome in outcomes[:4])
        assert self.raw_get(join(root, "y")) == b"y"

    def test_with_an_etag_only_that_very_object_goes(self, deleter: Delete, root: str) -> None:
        keys = [join(root, name) for name in ("same", "changed", "gone")]
        for key in keys:
            self.raw_put(key, b"first")
        doomed = [Doomed(key, self.etag(key)) for key in keys]
        self.raw_put(keys[1], b"written again")
        assert deleter.delete([Doomed(keys[2])])[0].fate is Fate.DELETED
        fates = [outcome.fate for outcome in deleter.delete(doomed)]
        assert fates[:2] == [Fate.DELETED, Fate.CHANGED]
        assert fates[2] in (Fate.MISSING, self.gone)
        assert self._there(keys) == [keys[1]]

    def test_nothing_is_sent_once_it_may_not_be(self, deleter: Delete, root: str) -> None:
        keys = [join(root, name) for name in ("a", "bell\x07" if "bell\x07" in self.awkward else "b")]
        for key in keys:
            self.raw_put(key, b"x")

        def no_more() -> None:
            raise LeaseHeld("the lease ran out")

        for doomed in ([Doomed(key) for key in keys], [Doomed(keys[0], self.etag(keys[0]))]):
            with pytest.raises(LeaseHeld):
                deleter.delete(doomed, no_more)
        assert self._there(keys) == keys

    def test_travels_in_a_pickle(self, deleter: Delete, root: str) -> None:
        for name, copy in (("x", deleter), ("y", deleter.share(4))):
            self.raw_put(join(root, name), b"x")
            there = pickle.loads(pickle.dumps(copy))
            assert there.delete([Doomed(join(root, name))])[0].fate is Fate.DELETED

    def _there(self, keys: list[str]) -> list[str]:
        return [key for key in keys if _exists(self.raw_get, key)]


def _exists(raw_get: Callable[[str], bytes], key: str) -> bool:
    try:
        raw_get(key)
    except KeyError:
        return False
    return True
