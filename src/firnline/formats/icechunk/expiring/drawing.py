"""A history before and after it is rewritten, as lines of text for a terminal: the oldest above, a line per snapshot.

Where a history branches, the larger part goes straight on and the rest is set to the right. So the drawing of a million
snapshots is at most 40 columns deep, and each keeps its whole id. A row of snapshots of which there is nothing to tell
is folded.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate, takewhile

from firnline.foreign import harmless
from firnline.formats.icechunk.expiring.ancestry import RefHistory
from firnline.formats.icechunk.expiring.rewriting import Rewriting
from firnline.formats.icechunk.reading.history import HistorySnapshot
from firnline.model.snapshots import Ref, RefKind
from firnline.plans.pages import counted, minute, number
from firnline.ports.abilities import HistoryDrawing

WIDTH = 80
_UNFOLDED = 4
"""Up to so many snapshots in a row are all shown."""


class Sign(StrEnum):
    """What becomes of a snapshot, as its sign in a drawing."""

    STAYS = "o"
    FOLLOWS_ROOT = "^"
    HELD = "."
    GOES = "x"
    UNREFERENCED = "?"
    """No ref led to it before either: an expiry does not decide about it, a collection does."""


LEGEND = "o stays  ^ follows the root now  . expired, held by a ref  x goes  ? had no ref"
_MORE = {Sign.STAYS: "stay", Sign.HELD: "are held by a ref", Sign.GOES: "go", Sign.UNREFERENCED: "had no ref"}
"""Said of many in a row. Of what follows the root now there is always something to tell, and no row."""


def drawn(rewriting: Rewriting, width: int = WIDTH) -> HistoryDrawing:
    """Returns the history before and after, no line wider than a terminal of so many columns: before with every
    snapshot and what becomes of it, after with those that refs still lead to.
    """
    signs = {name: _sign(name, each, rewriting) for name, each in rewriting.before.snapshots.items()}
    after = rewriting.after.without(rewriting.dangling)
    before = _Tree.of(rewriting.before, signs, set(rewriting.deleted))
    left = _Tree.of(after, signs, frozenset())
    end = [f"{counted(len(rewriting.dangling), 'snapshot')} no ref leads to"] if rewriting.dangling else []
    return HistoryDrawing(
        tuple(_cut(line, width) for line in before.lines()),
        tuple(_cut(line, width) for line in (*left.lines(), *end)),
        LEGEND,
    )


def _sign(name: str, snapshot: HistorySnapshot, rewriting: Rewriting) -> Sign:
    if name in rewriting.dangling:
        return Sign.GOES if name in rewriting.released else Sign.UNREFERENCED
    if name in rewriting.parents:
        return Sign.FOLLOWS_ROOT
    stays = name in rewriting.survivors or snapshot.parent is None
    return Sign.STAYS if stays else Sign.HELD


@dataclass(frozen=True, slots=True)
class _Tree:
    """A history from its roots on. `children` has the one that goes straight on last."""

    history: RefHistory
    children: Mapping[str, list[str]]
    roots: list[str]
    labels: Mapping[str, str]
    signs: Mapping[str, Sign]

    @staticmethod
    def of(history: RefHistory, signs: Mapping[str, Sign], going: Set[Ref]) -> _Tree:
        children: dict[str, list[str]] = {name: [] for name in history.snapshots}
        roots = []
        weights = dict.fromkeys(history.snapshots, 1)
        for each in reversed(list(history.oldest_first())):
            if each.parent is None:
                roots.append(each.id)
            else:
                children[each.parent].append(each.id)
                weights[each.parent] += weights[each.id]

        def place(name: str) -> tuple[int, str]:
            return history.snapshots[name].flushed_us, name

        for found in children.values():
            found.sort(key=lambda name: (weights[name], *place(name)))
            found[:-1] = sorted(found[:-1], key=place)
        return _Tree(history, children, sorted(roots, key=place), _labels(history, going), signs)

    def lines(self) -> Iterator[str]:
        for root in self.roots:
            yield from self._from(root)

    def _from(self, root: str) -> Iterator[str]:
        due = [(root, "", "")]
        while due:
            start, first, margin = due.pop()
            row = list(self._row(start))
            yield from self._folded(row, first, margin)
            onward = self.children[row[-1]]
            due.extend((name, margin, margin) for name in onward[-1:])
            due.extend((name, f"{margin}|-", f"{margin}| ") for name in reversed(onward[:-1]))

    def _row(self, start: str) -> Iterator[str]:
        """Yields a snapshot, and those straight after it if there is nothing to tell of any."""
        yield start
        if self._is_plain(start):
            same = self.signs[start]
            yield from takewhile(lambda name: self._is_plain(name) and self.signs[name] is same, self._onward(start))

    def _onward(self, start: str) -> Iterator[str]:
        here = start
        while len(self.children[here]) == 1:
            (here,) = self.children[here]
            yield here

    def _is_plain(self, name: str) -> bool:
        """Tells whether no ref points to a snapshot, its parent is the old one, and one other comes after it."""
        told = name in self.labels or self.signs[name] is Sign.FOLLOWS_ROOT
        return not told and len(self.children[name]) == 1

    def _folded(self, row: list[str], first: str, margin: str) -> Iterator[str]:
        yield self._line(row[0], first)
        if len(row) <= _UNFOLDED:
            yield from (self._line(name, margin) for name in row[1:])
            return
        yield f"{margin}: {number(len(row) - 2)} more {_MORE[self.signs[row[0]]]}"
        yield self._line(row[-1], margin)

    def _line(self, name: str, margin: str) -> str:
        at = minute(self.history.snapshots[name].flushed_us // 1000)
        label = self.labels.get(name, "")
        return f"{margin}{self.signs[name]} {name} {at}" + (f" {label}" if label else "")


def _labels(history: RefHistory, going: Set[Ref]) -> dict[str, str]:
    """Returns which refs point to each snapshot, of those that have any: branches first, then by name."""
    found: dict[str, list[str]] = {}
    for ref in sorted(history.refs, key=lambda ref: (ref.kind, ref.name)):
        name = harmless(ref.name) if ref.kind is RefKind.BRANCH else f"tag {harmless(ref.name)}"
        found.setdefault(ref.snapshot, []).append(f"{name} (goes)" if ref in going else name)
    return {snapshot: ", ".join(names) for snapshot, names in found.items()}


def _cut(line: str, width: int) -> str:
    """Returns as much of a line as fits: some letters take two columns, and some none."""
    ends = list(accumulate(map(_columns, line)))
    return line if not ends or ends[-1] <= width else f"{line[: bisect_right(ends, width - 1)]}…"


def _columns(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1
