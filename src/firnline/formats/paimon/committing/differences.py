"""From one version of a table's metadata files to the next: what is put, what is taken, and in which order."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from firnline.formats.paimon import names
from firnline.formats.paimon.reading.folder import Files


class Difference(NamedTuple):
    """`stays` are the files with which the range of each branch begins that loses snapshots or gets some back, and the
    schemas of branches that come back, with their texts: a number can be given again. `drops` are the branches of which
    nothing is left, `replaces` what stood where something is put.
    """

    puts: dict[str, str]
    takes: dict[str, str]
    stays: dict[str, str]
    drops: tuple[str, ...]
    replaces: dict[str, str]


def difference(before: Files, after: Files) -> Difference:
    puts = {path: text for path, text in after.items() if before.get(path) != text}
    takes = {path: text for path, text in before.items() if path not in after}
    drops = {names.split_branch(path)[0] for path in takes} - {names.split_branch(path)[0] for path in after}
    replaces = {path: before[path] for path in puts if path in before}
    stays = {path: after[path] for path in (*_firsts(takes, after), *_new_schemas(puts, before))}
    stays |= {path: before[path] for path in _firsts(puts, before)}
    return Difference(puts, takes, stays, tuple(sorted(drops)), replaces)


def signs_of(files: Files) -> dict[str, str]:
    """Returns what tells the table from one that is made in its place: digests of its oldest and its newest schema,
    which say when they were made. A tool that removes schemas that nothing uses leaves one of them.
    """
    numbers = {int(path.rpartition("-")[2]): path for path in files if is_schema(path) and not _branch_of(path)}
    return {numbers[each]: sign(files[numbers[each]].encode()) for each in {min(numbers), max(numbers)}}


def sign(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _branch_of(path: str) -> str:
    return names.split_branch(path)[0]


def _new_schemas(puts: Files, before: Files) -> Iterator[str]:
    """Yields the schemas of branches that had none: who drops such a branch meanwhile leaves the rest unreadable."""
    present = {names.split_branch(path)[0] for path in before if is_schema(path)}
    return (path for path in puts if is_schema(path) and names.split_branch(path)[0] not in present)


def _firsts(moved: Files, among: Files) -> Iterator[str]:
    """Yields the file that the range of each branch begins with of which snapshots come or go: its end that moves."""
    for branch in {names.split_branch(path)[0] for path in moved if is_snapshot(path)}:
        left = [number for path in among if (number := number_of_snapshot(path, branch)) is not None]
        if left:
            yield names.snapshot_file(branch, min(left))


def fits(before: Files, now: Files, drops: Collection[str]) -> bool:
    """Tells whether the folder still is what a commit was made from, but for what cannot matter to it: snapshots on
    top, schemas, changelogs and hints. A new tag, branch, consumer or note may: then the commit is made anew. To a
    branch that it drops everything matters, and so does every new schema: it may make others read that branch.
    """
    changed = {path for path in {*before, *now} if before.get(path) != now.get(path)}
    if any(names.split_branch(path)[0] in drops or (drops and is_schema(path)) for path in changed):
        return False
    return all(names.is_hint(path) or (path not in before and _is_harmless(path, before)) for path in changed)


def _is_harmless(path: str, before: Files) -> bool:
    branch, below = names.split_branch(path)
    known = names.numbered(below)
    if known is None:
        return False
    if known[0] != "snapshot":
        return branch in {names.split_branch(each)[0] for each in before}
    return known[1] > max(
        (number for each in before if (number := number_of_snapshot(each, branch)) is not None), default=0
    )


def number_of_snapshot(path: str, of: str | None = None) -> int | None:
    """Returns the number of a snapshot's file, of one branch where one is named."""
    branch, below = names.split_branch(path)
    known = names.numbered(below)
    return known[1] if known is not None and known[0] == "snapshot" and of in (None, branch) else None


def in_order_of_putting(files: Mapping[str, str], rolled_back: Mapping[str, range] | None = None) -> list[str]:
    """Returns schemas, then tags, changelogs and notes, then snapshots, then hints: a branch without a schema can be
    read by nobody, readers that follow a hint find what it says, and a range grows from its end, highest first.

    What is among the numbers that were `rolled_back` in its branch stays away: nobody wants it back.
    """
    wanted = (path for path, text in files.items() if not _is_among(path, text, rolled_back or {}))
    return sorted(
        wanted,
        key=lambda path: (names.is_hint(path), is_snapshot(path), not is_schema(path), -_place(path), path),
    )


def _is_among(path: str, text: str, numbers: Mapping[str, range]) -> bool:
    branch, below = names.split_branch(path)
    known = names.known(below)
    if branch not in numbers or known is None or known[0] in ("schema", "consumer"):
        return False
    return int(json.loads(text)["id"]) in numbers[branch]


def newest_of(files: Files) -> dict[str, int]:
    """Returns the number of the newest snapshot of each branch that has any."""
    found: dict[str, int] = {}
    for path in files:
        number, branch = number_of_snapshot(path), names.split_branch(path)[0]
        if number is not None:
            found[branch] = max(number, found.get(branch, number))
    return found


def in_order_of_taking(files: Mapping[str, str], drops: Collection[str] = ()) -> list[str]:
    """Returns snapshots from the lowest up, so that a range shrinks from its beginning; then all else.

    Of a branch that is dropped all else goes first, and schemas last: a writer that comes between finds the newest
    snapshot and builds on it, or finds no branch.
    """
    return sorted(files, key=lambda path: (_turn(path, drops), _place(path), path))


def _turn(path: str, drops: Collection[str]) -> int:
    if names.split_branch(path)[0] in drops:
        return 2 if is_schema(path) else int(number_of_snapshot(path) is not None)
    return int(number_of_snapshot(path) is None)


def last_snapshots(order: Sequence[str], drops: Collection[str]) -> set[str]:
    """Returns the newest snapshot of each branch that is dropped, of files in the order of taking."""
    found = {}
    for path in order:
        if number_of_snapshot(path) is not None:
            found[names.split_branch(path)[0]] = path
    return {path for branch, path in found.items() if branch in drops}


def earliest_hint(path: str) -> str:
    """Returns the hint that names the first snapshot of the branch that a file belongs to."""
    return f"{names.branch_folder(names.split_branch(path)[0])}snapshot/EARLIEST"


def earliest_hints(puts: Files, takes: Files) -> set[str]:
    """Returns the hints that are put where a range loses its beginning."""
    return {earliest_hint(path) for path in takes if is_snapshot(path)} & puts.keys()


def is_snapshot(path: str) -> bool:
    return number_of_snapshot(path) is not None


def is_tag(path: str) -> bool:
    known = names.known(names.split_branch(path)[1])
    return known is not None and known[0] == "tag"


def is_schema(path: str) -> bool:
    known = names.numbered(names.split_branch(path)[1])
    return known is not None and known[0] == "schema"


def _place(path: str) -> int:
    """Returns the number of a numbered file: its place in its range."""
    known = names.numbered(names.split_branch(path)[1])
    return 0 if known is None else known[1]
