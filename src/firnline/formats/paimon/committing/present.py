"""What is in a table's folder at this moment, what came there since a commit was begun, and what
readers make of hints.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from typing import Any

from firnline.errors import ObjectNotFound
from firnline.formats.paimon import names
from firnline.formats.paimon.committing.differences import newest_of, number_of_snapshot, sign
from firnline.formats.paimon.reading import fields
from firnline.formats.paimon.reading.folder import Files, read_settled, written_times
from firnline.journal.layout import PROPERTIES
from firnline.model.locations import identity, join, stem_of
from firnline.patience import Patience
from firnline.ports.stores import Get, List, Read

_COPYING = Patience(attempts=8, base_delay_s=0.1, max_delay_s=0.5, budget_s=5.0)
"""How long a fast-forward may take to remove schemas and copy them back."""


def is_same_table(store: Get, proof: Mapping[str, Any]) -> bool:
    """Tells whether the table is still there that a commit was made from: not so if it was dropped, moved, or made
    again in its place. Whatever is put there then becomes a part of another table.
    """
    signs = proof.get("signs")
    if signs is None:  # a commit of an earlier version, which noted none
        return True
    for pause in chain((0.0,), _COPYING.pauses()):
        time.sleep(pause)
        if any(_has(store, join(proof["table_folder"], path), signs[path]) for path in signs):
            return True
    return False


def _has(store: Get, key: str, signed: str) -> bool:
    try:
        return sign(store.get(key)) == signed
    except ObjectNotFound:
        return False


def files_of_branch(store: List, folder: str, branch: str) -> set[str]:
    """Returns every file in a branch's folder, by its path below the table's; not those of a branch whose name begins
    with this one's and a slash.
    """
    place = join(folder, names.branch_folder(branch).rstrip("/"))
    paths = (identity(found.key).removeprefix(stem_of(folder)) for found in store.list(place))
    return {path for path in paths if names.split_branch(path)[0] == branch}


def snapshots_of_branch(store: List, folder: str, branch: str) -> set[int]:
    """Returns the numbers of the snapshots that a branch has."""
    place = f"{names.branch_folder(branch)}snapshot/"
    listed = (place + found.key.rpartition("/")[2] for found in store.list(join(folder, place)))
    return {number for path in listed if (number := number_of_snapshot(path, branch)) is not None}


def rolled_back(store: List, proof: Mapping[str, Any], gone: Collection[str]) -> dict[str, range]:
    """Returns the numbers above the newest snapshot of each branch, up to the newest that it had before. What was above
    that before stays so.

    Where none is there, the newest of those counts that are `gone` by our own hands: a rollback may have gone to it.
    Where all that are there are below that one, a writer gave their numbers again, and wants the newest of them to be
    it; but in a branch that was being dropped a writer just began anew.
    """
    found: dict[str, range] = {}
    before, drops = proof.get("newest"), proof.get("drops", ())
    for branch in {names.split_branch(path)[0] for path in proof["takes"]}:
        ours = {number for path in gone if (number := number_of_snapshot(path, branch)) is not None}
        there = snapshots_of_branch(store, proof["table_folder"], branch)
        if numbers := there | ours if branch in drops else there or ours:
            highest = names.LARGEST if before is None else before.get(branch, -1)
            found[branch] = range(max(numbers) + 1, highest + 1)
    return found


def must_be_made_anew(store: Read, proof: Mapping[str, Any], begun_ms: int) -> bool:
    """Tells whether a commit that was cut must not be carried on: a hold was noted, or a consumer began to read what
    goes.

    What is too much here only means that the commit is made anew. It was begun at `begun_ms`, by the
    store's clock.
    """

    def is_needed(files: Files) -> bool:
        noted = (proof.get("note"), proof["puts"].get(PROPERTIES))
        if "note" in proof and files.get(PROPERTIES) not in noted:
            return True
        return any(_readers(store, files, proof, begun_ms))

    return read_settled(store, proof["table_folder"], is_needed)


def _readers(store: Read, files: Files, proof: Mapping[str, Any], begun_ms: int) -> Iterator[str]:
    """Yields the consumers that read from a snapshot on that goes, and those that were to go and were moved since."""
    written = written_times(store, proof["table_folder"], files)
    taken = newest_of(proof["takes"])
    highest = {branch: number for branch, number in taken.items() if branch not in proof.get("drops", ())}
    for path, number in _consumers(files):
        if path in proof["takes"] and written.get(path, begun_ms) < begun_ms:
            continue
        if number <= highest.get(names.split_branch(path)[0], -1):
            yield path


def next_of_consumers(store: Read, proof: Mapping[str, Any]) -> dict[str, int]:
    """Returns the lowest number that a consumer reads next, of each branch. Those that the commit itself put do not
    count.
    """
    return read_settled(store, proof["table_folder"], lambda files: _next_of(files, proof))


def _next_of(files: Files, proof: Mapping[str, Any]) -> dict[str, int]:
    found: dict[str, int] = {}
    for path, number in _consumers(files):
        if proof["puts"].get(path) != files[path]:
            branch = names.split_branch(path)[0]
            found[branch] = min(number, found.get(branch, number))
    return found


def _consumers(files: Files) -> Iterator[tuple[str, int]]:
    """Yields each consumer's file with the number that it reads next."""
    for path, text in files.items():
        known = names.named(names.split_branch(path)[1])
        if known is not None and known[0] == "consumer":
            yield path, fields.whole(fields.parse(text, path), "nextSnapshot", path)


_NUMBER = re.compile(r"[+-]?\d{1,1000}")


def latest_hint(branch: str) -> str:
    """Returns the hint that names the newest snapshot of a branch."""
    return f"{names.branch_folder(branch)}snapshot/LATEST"


def is_latest_hint(path: str) -> bool:
    return path == latest_hint(names.split_branch(path)[0])


def misleading_hints(files: Files) -> Iterator[tuple[str, str]]:
    """Yields each hint from which Java does not come to the newest snapshot of its branch, and where it comes to."""
    for path in sorted(filter(is_latest_hint, files)):
        branch = names.split_branch(path)[0]
        numbers = {number for each in files if (number := number_of_snapshot(each, branch)) is not None}
        believed = _believed(files[path], numbers)
        if believed is not None and believed != max(numbers, default=None):
            newest = f"the newest is {max(numbers)}" if numbers else "there is none"
            yield path, f"Java takes snapshot {believed} for the newest, but {newest}"


def _believed(text: str, numbers: Collection[int]) -> int | None:
    """Returns the number that Java takes for the newest because the hint says so; None where it looks for itself.

    It joins the lines, and only looks whether the number after that one is there: not whether that one itself is.
    """
    said = "".join(text.splitlines())
    number = int(said) if _NUMBER.fullmatch(said) else 0
    return number if 0 < number <= names.LARGEST and number + 1 not in numbers else None
