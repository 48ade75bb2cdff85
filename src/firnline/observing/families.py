"""Families of metrics, and how Prometheus writes them down."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum


class Kind(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass
class Family:
    """Values of one name, told apart by labels. Of a histogram, `values` has the sums and `buckets` the counts."""

    name: str
    help: str
    kind: Kind
    labels: tuple[str, ...]
    values: dict[tuple[str, ...], float] = field(default_factory=dict)
    buckets: dict[tuple[str, ...], list[int]] = field(default_factory=dict)

    def add(self, labels: tuple[str, ...], count: float = 1) -> None:
        self.values[labels] = self.values.get(labels, 0) + count

    def set(self, labels: tuple[str, ...], value: float) -> None:
        self.values[labels] = value

    def observe(self, labels: tuple[str, ...], value: float, bounds: Sequence[float]) -> None:
        """Counts a value in each bucket whose bound it does not exceed; the last bucket has no bound."""
        self.add(labels, value)
        counts = self.buckets.setdefault(labels, [0] * (len(bounds) + 1))
        for place, bound in enumerate((*bounds, float("inf"))):
            counts[place] += value <= bound

    def lines(self) -> Iterator[str]:
        """Yields nothing for a family without any value: its name alone would say zero."""
        if self.values:
            yield from self.heading()
            for labels, value in self.values.items():
                yield f"{self.name}{_labels(self.labels, labels)} {_number(value)}"

    def heading(self) -> Iterator[str]:
        yield f"# HELP {self.name} {self.help}"
        yield f"# TYPE {self.name} {self.kind}"


def histogram_lines(family: Family, bounds: Sequence[float]) -> Iterator[str]:
    """Yields a histogram: cumulative buckets, the sum and the count."""
    if family.values:
        yield from family.heading()
    named = (*family.labels, "le")
    for labels, total in family.values.items():
        counts, shown = family.buckets[labels], (*map(_number, bounds), "+Inf")
        for bound, count in zip(shown, counts, strict=True):
            yield f"{family.name}_bucket{_labels(named, (*labels, bound))} {count}"
        yield f"{family.name}_sum{_labels(family.labels, labels)} {_number(total)}"
        yield f"{family.name}_count{_labels(family.labels, labels)} {counts[-1]}"


def _labels(names: tuple[str, ...], values: tuple[str, ...]) -> str:
    shown = ",".join(f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True))
    return f"{{{shown}}}" if shown else ""


def _escaped(value: str) -> str:
    printable = value.encode("utf-8", "backslashreplace").decode()
    return printable.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))
