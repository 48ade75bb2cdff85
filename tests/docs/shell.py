"""Shell examples, run: each `$ firnline …` of a page in order, its output compared with what the page shows.

A page's figures are those of another lake than the test's, so shapes are compared: numbers, times, sizes and blanks
may differ, words may not. A line `[…]` stands for any number of lines. `$ echo $?` shows the exit code of the command
before it; without it the command must have succeeded. Runs, snapshots and paths that the page shows are remembered
with what they really are, so that a later command may name them.
"""

from __future__ import annotations

import csv
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from firnline.cli.main import run

CUT = "[…]"
_TOKENS = re.compile(r"(?:\S+@)?\d{8}T\d{6}Z-[0-9a-f]{6}|(?<![\w.])\d{15,19}(?![\w.])|file:///\S+")
_SHAPES = (
    (re.compile(r"[\d.,]+ (?:[KMGT]i)?B\b"), "SIZE"),
    (re.compile(r"\b(?:\d+[dhms])+\b"), "DURATION"),
    (re.compile(r"\d+(?:,\d{3})*"), "0"),
    (re.compile(r"\b0 (file|snapshot|ref|row|table|problem|manifest|manifest list)s\b"), r"0 \1"),
    (re.compile(r"\s+"), " "),
)


@dataclass(frozen=True)
class Example:
    """One command of a page, the lines shown below it and the exit code that it must have."""

    command: str
    shown: list[str]
    code: int


def examples(block: str) -> Iterator[Example]:
    """Yields the commands of a console block."""
    parts = [part.splitlines() for part in re.split(r"^\$ ", block, flags=re.MULTILINE) if part.strip()]
    for part, after in zip(parts, [*parts[1:], [""]], strict=True):
        if part[0] != "echo $?":
            yield Example(part[0], part[1:], int(after[1]) if after[0] == "echo $?" else 0)


@dataclass
class Shell:
    """Runs the examples of one page in a folder that has a lake in it."""

    lake: Path
    capture: pytest.CaptureFixture[str]
    known: dict[str, str] = field(default_factory=dict)

    def run(self, example: Example) -> None:
        words = [self._real(word) for word in shlex.split(example.command)]
        assert words[0] == "firnline", f"not a command of ours: {example.command}"
        self.capture.readouterr()
        code = run(words[1:])
        printed = "".join(self.capture.readouterr())
        assert code == example.code, f"$ {example.command}\nexit code {code}\n{printed}"
        self._compare(example, printed)

    def _compare(self, example: Example, printed: str) -> None:
        """Compares the runs of lines between cuts, each found after the one before it."""
        real = [line.rstrip() for line in printed.strip("\n").splitlines()]
        at, free = 0, False
        for shown in [line.rstrip() for line in example.shown]:
            if shown == CUT:
                free = True
                continue
            places = range(at, len(real)) if free else range(at, min(at + 1, len(real)))
            found = next((place for place in places if shape(real[place]) == shape(shown)), None)
            assert found is not None, f"$ {example.command}\nthe page shows: {shown}\nprinted was:\n{printed}"
            self._learn(shown, real[found])
            at, free = found + 1, False
        assert free or not example.shown or at == len(real), f"$ {example.command}\nthe page leaves out:\n{printed}"

    def _learn(self, shown: str, real: str) -> None:
        self.known.update(zip(_TOKENS.findall(shown), _TOKENS.findall(real), strict=True))

    def _real(self, word: str) -> str:
        """Returns what a word of the page means here. A path nobody showed yet is the first data file of the list
        that an example before it wrote.
        """
        if word.startswith("file:///") and word not in self.known:
            (listing,) = self.lake.glob("*.csv")
            rows = csv.DictReader(listing.read_text().splitlines())
            self.known[word] = next(row["path"] for row in rows if row["kind"] == "data")
        return self.known.get(word, word)


def shape(line: str) -> str:
    """Returns what of a line is the same on every lake."""
    line = _TOKENS.sub("NAME", line)
    for pattern, name in _SHAPES:
        line = pattern.sub(name, line)
    return line.strip()
