"""From one version of a table's metadata files to the next: what is put, what is taken, and in which order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from firnline.formats.paimon import names
from firnline.formats.paimon.folder import Files


class Difference(NamedTuple):
    """`stays` are the files with which the range of each branch begins that loses snapshots; `replaces` what stood
    where something is put.
    """

    puts: dict[str, str]
    takes: dict[str, str]
    stays: tuple[str, ...]
    replaces: dict[str, str]


def difference(before: Files, after: Files) -> Difference:
    puts = {path: text for path, text in after.items() if before.get(path) != text}
    takes = {path: text for path, text in before.items() if path not in after}
    replaces = {path: before[path] for path in puts if path in before}
    return Difference(puts, takes, tuple(_firsts(takes, after)), replaces)


def _firsts(takes: Files, after: Files) -> Iterator[str]:
    for branch in sorted({names.split_branch(path)[0] for path in takes if _number(path) is not None}):
        left = [number for path in after if (number := _number(path, branch)) is not None]
        if left:
            yield names.snapshot_file(branch, min(left))


def fits(before: Files, now: Files) -> bool:
    """Tells whether the folder still is what a commit was made from, but for what cannot matter to it: snapshots on
    top, schemas, changelogs and hints. A new tag, branch, consumer or note may: then the commit is made anew.
    """
    changed = {path for path in {*before, *now} if before.get(path) != now.get(path)}
    return all(_is_hint(path) or (path not in before and _is_harmless(path, before)) for path in changed)


def _is_hint(path: str) -> bool:
    return names.split_branch(path)[1] in names.HINTS


def _is_harmless(path: str, before: Files) -> bool:
    branch, below = names.split_branch(path)
    known = names.numbered(below)
    if known is None:
        return False
    if known[0] != "snapshot":
        return branch in {names.split_branch(each)[0] for each in before}
    return known[1] > max((number for each in before if (number := _number(each, branch)) is not None), default=0)


def _number(path: str, of: str | None = None) -> int | None:
    """Returns the number of a snapshot's file, of one branch where one is named."""
    branch, below = names.split_branch(path)
    known = names.numbered(below)
    return known[1] if known is not None and known[0] == "snapshot" and of in (None, branch) else None


def in_order_of_putting(files: Mapping[str, str]) -> list[str]:
    """Returns tags, changelogs and notes, then snapshots from the highest down, then hints: readers that follow a hint
    find what it says, and a range grows from its end.
    """
    return sorted(files, key=lambda path: (_is_hint(path), _number(path) is not None, -(_number(path) or 0), path))


def in_order_of_taking(files: Mapping[str, str]) -> list[str]:
    """Returns snapshots from the lowest up, so that a range shrinks from its beginning; then all else."""
    return sorted(files, key=lambda path: (_number(path) is None, _number(path) or 0, path))
