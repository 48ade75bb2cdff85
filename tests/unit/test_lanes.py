"""What `make test` leaves to the long lane: tests that say so, those that a class names, and all cases but samples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from harness.lanes import FULL, left_out


class Adapter:
    def test_a(self) -> None: ...
    def test_b(self) -> None: ...


@dataclass
class Case:
    """An item as pytest collects it, of a class that inherits two tests."""

    name: str
    marks: tuple[pytest.MarkDecorator, ...] = ()
    cls: type = Adapter

    @property
    def nodeid(self) -> str:
        return f"tests/test_x.py::{self.name}"

    @property
    def originalname(self) -> str:
        return self.name.partition("[")[0]

    @property
    def callspec(self) -> SimpleNamespace:
        return SimpleNamespace(indices={"x": int(self.name[-2])} if "[" in self.name else {})

    def iter_markers(self, name: str) -> Iterator[pytest.Mark]:
        return (each.mark for each in self.marks if each.name == name)

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return next(self.iter_markers(name), None)


def left(*cases: Case) -> list[str]:
    items: Any = cases
    found = left_out(items)
    return [each.name for each in cases if each.nodeid in found]


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FULL, raising=False)


@pytest.mark.parametrize(
    ("mark", "goes"),
    [
        (pytest.mark.full, ["test_a", "test_b"]),
        (pytest.mark.full("test_b"), ["test_b"]),
        (pytest.mark.full_but("test_b"), ["test_a"]),
        (pytest.mark.slow, []),
    ],
)
def test_a_class_says_which_of_the_tests_that_it_inherits_are_long(mark: pytest.MarkDecorator, goes: list[str]) -> None:
    assert left(Case("test_a", (mark,)), Case("test_b", (mark,))) == goes


def test_a_name_that_no_test_of_the_class_has_is_refused() -> None:
    for mark in (pytest.mark.full("test_c"), pytest.mark.full_but("test_a", "test_c")):
        with pytest.raises(pytest.UsageError, match=r"test_x.py::test_a: `full.*` names test_c: no test of its class"):
            left(Case("test_a", (mark,)))


def test_samples_are_taken_of_what_is_not_long_anyway() -> None:
    one, long = pytest.mark.sampled(1), pytest.mark.full
    assert left(Case("test_a[0]", (one,)), Case("test_a[1]", (one, long))) == ["test_a[1]"]
    assert len(left(*(Case(f"test_a[{each}]", (one,)) for each in range(4)))) == 3


def test_the_long_lane_runs_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FULL, "1")
    assert left(Case("test_a", (pytest.mark.full,)), Case("test_b", (pytest.mark.sampled(0),))) == []
