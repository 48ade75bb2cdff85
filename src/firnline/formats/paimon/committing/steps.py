"""Carrying out a commit file by file, and putting everything back if another writer came between."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from firnline.errors import AlreadyExists, ObjectNotFound
from firnline.formats.paimon import names
from firnline.formats.paimon.committing.differences import (
    earliest_hint,
    earliest_hints,
    in_order_of_putting,
    in_order_of_taking,
    is_schema,
    is_snapshot,
    is_tag,
    last_snapshots,
    newest_of,
    number_of_snapshot,
)
from firnline.formats.paimon.committing.present import (
    files_of_branch,
    is_latest_hint,
    is_same_table,
    next_of_consumers,
    rolled_back,
    snapshots_of_branch,
)
from firnline.journal.layout import PROPERTIES
from firnline.model.locations import join
from firnline.ports.catalogs import Still
from firnline.ports.retire import Retire
from firnline.ports.stores import ReadWrite

_MOVES = ("takes", "puts")
_STRIDE = 100
"""How many snapshots go before a hint follows them."""


class GivenUp(Exception):
    """Another writer took away what the commit leaves, or wrote where it writes, or made another table there."""


@dataclass(frozen=True, slots=True)
class Carrying:
    """One commit, by its proof alone: a process that carries it on has nothing else. `still` is asked before each
    request.

    `gone` is what this process itself took away: who carries the commit on cannot know that of another.
    """

    store: ReadWrite
    retirer: Retire
    proof: Mapping[str, Any]
    still: Still
    gone: list[str] = field(default_factory=list)

    def carry_out(self) -> None:
        """Puts and takes everything; what is done already is left as it is. Raises GivenUp in the middle."""
        proof = self.proof
        late = earliest_hints(proof["puts"], proof["takes"])
        for path in in_order_of_putting(proof["puts"]):
            if path not in late:
                self.still()
                self._put(path)
        order = in_order_of_taking(proof["takes"], proof.get("drops", ()))
        last = last_snapshots(order, proof.get("drops", ()))
        for place, path in enumerate(order):
            self.still()
            ahead = self._refuse_rolled_back()
            if path in last:
                self._refuse_gone_back()
            if path in last or is_schema(path):
                self._refuse_revived(order[place:])
            self._follow(place, path, late - ahead)
            if self._take(path):
                self.gone.append(path)
        for path in sorted((late - self._refuse_rolled_back()) | set(filter(is_latest_hint, proof["puts"]))):
            self.still()
            self._put(path)
        self._refuse_rolled_back()  # to a tag, just before the hint: it would name a number that is given again
        self._refuse_gone_back()
        for path in filter(is_tag, proof["puts"]):
            self._refuse_expired(path)  # the writers' expiry had looked at the tags before this one was there
        for branch in proof.get("drops", ()):
            self.retirer.retire_folder(self._key(names.branch_folder(branch)))
            if self._in_branch(branch):  # written between the last look and the last delete
                raise GivenUp
        if proof["puts"]:
            self._refuse_another()  # made between the last look and the last write

    def give_up(self) -> None:
        """Puts back what was taken or written over, and takes away again what was put.

        What a rollback took away meanwhile stays away: it is not ours, and would be the newest snapshot again. So does
        what another expiry would have taken: the files of such a snapshot may be gone. And nothing comes back where the
        table was dropped: one that is made again there would have consumers that skip its rows.
        """
        proof, ahead = self.proof, self._overtaken()
        lowest = self._lowest()
        for path in in_order_of_putting(proof["takes"], rolled_back(self.store, proof, self.gone)):
            if earliest_hint(path) in ahead or _is_from(path, lowest):
                continue
            if not is_same_table(self.store, proof):
                break
            if not self._has_list(path, proof["takes"][path]):
                ahead |= {earliest_hint(path)} if is_snapshot(path) else set()
                continue
            self.still()
            self._lower_hint(path)
            with suppress(AlreadyExists):
                self.store.put_if_absent(self._key(path), proof["takes"][path].encode())
        branches = {names.split_branch(path)[0] for path in proof["puts"]}  # without its schema nobody reads one
        ours, kept = newest_of(proof["puts"]), set[str]()
        reading = next_of_consumers(self.store, proof) if ours else {}
        for path in in_order_of_taking(proof["puts"], branches):
            if earliest_hint(path) in ahead and path != PROPERTIES and self._has_list(path, proof["puts"][path]):
                continue  # a tag of ours keeps what nothing else would hold
            branch = names.split_branch(path)[0]
            # Looked at just before each goes, for a rollback may come at any time; what is above one that stays stays.
            if is_snapshot(path) and (branch in kept or self._is_used(path, ours[branch], reading)):
                kept.add(branch)
                continue
            self.still()
            key, data = self._key(path), proof["puts"][path].encode()
            if path not in proof["replaces"]:
                self.retirer.retire(key, self._present(key) or b"" if names.is_hint(path) else data)
            elif is_latest_hint(path):
                self._point_at_newest(path)
            elif path == earliest_hint(path):
                self._point_at_first(path)
            elif names.is_hint(path) or self._present(key) == data:  # a note that says more by now holds a new hold
                self.store.put(key, proof["replaces"][path].encode())

    def _is_used(self, path: str, newest: int, reading: Mapping[str, int]) -> bool:
        """Tells whether a snapshot that an undo put is wanted by now: `newest` is the last of these in its branch.

        Where nothing above that is left, a rollback went to one of these, and without it the branch would have no
        snapshot at all. What a consumer reads that came while the undo was cut stays too, but not below a hole.
        """
        branch = names.split_branch(path)[0]
        above = {number for number in self._numbers(branch) if number > newest}
        if not above:
            return any(is_snapshot(each) and names.split_branch(each)[0] == branch for each in self.proof["stays"])
        return newest + 1 in above and _is_from(path, reading)

    def _lowest(self) -> dict[str, int]:
        """Returns the first number of each branch that has any and goes on. Snapshots go from the lowest up, so this
        commit did not take what is from there on: it is there, or a rollback that is not over yet removed it just now.
        """
        drops = self.proof.get("drops", ())
        branches = {names.split_branch(path)[0] for path in self.proof["takes"] if is_snapshot(path)}
        found = {branch: self._numbers(branch) for branch in branches if branch not in drops}
        return {branch: min(numbers) for branch, numbers in found.items() if numbers}

    def bare(self) -> list[str]:
        """Returns the snapshots and tags among what is put whose own list is gone."""
        return [path for path, text in self.proof["puts"].items() if not self._has_list(path, text)]

    def _has_list(self, path: str, text: str) -> bool:
        """Tells whether the list is there that only this snapshot or tag has; true for all else. Paimon's expiry
        deletes it with the files of a snapshot, before the snapshot itself: one without it must not come back.
        """
        known = names.known(names.split_branch(path)[1])
        if known is None or known[0] not in ("snapshot", "tag"):
            return True
        return self._is_there(f"manifest/{json.loads(text)['deltaManifestList']}")

    def _follow(self, place: int, path: str, late: Collection[str]) -> None:
        """Lets the hint follow the range from time to time: pypaimon looks no further than 300 numbers beyond it.

        It never runs ahead: Paimon's rollback to a snapshot that is still there leaves all between that and the hint.
        """
        if place and place % _STRIDE == 0 and is_snapshot(path) and earliest_hint(path) in late:
            self.store.put(self._key(earliest_hint(path)), path.rpartition("-")[2].encode())

    def _lower_hint(self, path: str) -> None:
        """Lets the hint name a snapshot just before it comes back below what the hint says: until it is there, Java
        looks for itself. A hint that was lowered afterwards would run ahead of the range meanwhile.
        """
        number, key = number_of_snapshot(path), self._key(earliest_hint(path))
        said = self._present(key) if number is not None else None
        if number is not None and said is not None and said.isdigit() and int(said) > number:
            self.store.put(key, str(number).encode())

    def _put(self, path: str) -> None:
        """Writes a hint over what is there, and the note over what it said. Any other file only where none is: its name
        was free, and one that differs is another writer's who came between.
        """
        self._refuse_another()
        if is_snapshot(path):
            self._refuse_rolled_back()
        self._refuse_expired(path)
        if is_snapshot(path):
            self._lower_hint(path)
        key, data = self._key(path), self.proof["puts"][path].encode()
        if is_latest_hint(path):
            self._point_at_newest(path)
        elif names.is_hint(path):
            self.store.put(key, data)
        elif path == PROPERTIES:
            self._replace_note(key, data)
        else:
            try:
                self.store.put_if_absent(key, data)
            except AlreadyExists:
                if self.store.get(key) != data:
                    raise GivenUp from None

    def _refuse_another(self) -> None:
        """Raises GivenUp if the table that the commit was made from is not there any more."""
        if not is_same_table(self.store, self.proof):
            raise GivenUp

    def _refuse_expired(self, path: str) -> None:
        """Raises GivenUp if the files of a snapshot or tag that is put are gone. The writers' own expiry may have taken
        them while a commit was cut: what an undo had put there before, or what was to stay by a tag of ours alone.
        """
        if not self._has_list(path, self.proof["puts"][path]):
            raise GivenUp

    def _point_at_newest(self, path: str) -> None:
        """Writes the hint at the newest snapshot from what is there, until it still is after the write: a rollback or a
        commit may come between, and Java believes a hint at what a rollback took away.
        """
        branch, key = names.split_branch(path)[0], self._key(path)
        while numbers := self._numbers(branch):
            data = str(max(numbers)).encode()
            if self._present(key) == data:
                return
            self.still()
            self.store.put(key, data)

    def _point_at_first(self, path: str) -> None:
        """Writes the hint at the first snapshot from what is there. What it said before may be a number by now that a
        rollback took away and a writer gives again: then Java would take that one for the first.
        """
        if numbers := self._numbers(names.split_branch(path)[0]):
            self.store.put(self._key(path), str(min(numbers)).encode())

    def _replace_note(self, key: str, data: bytes) -> None:
        """Writes the note. A commit may be carried on long after it was made, and a hold may have been noted
        between: then the commit is made anew.
        """
        present, before = self._present(key), self.proof["replaces"].get(PROPERTIES)
        if present == data:
            return
        if present != (None if before is None else before.encode()):
            raise GivenUp
        self.store.put(key, data)

    def _refuse_rolled_back(self) -> set[str]:
        """Returns the hints that another expiry has moved on. Raises where what the commit leaves was rolled back."""
        stays = self.proof["stays"]
        gone = [path for path in stays if self._present(self._key(path)) != stays[path].encode()]
        ahead = self._overtaken() if gone else set()
        if any(earliest_hint(path) not in ahead for path in gone):
            raise GivenUp
        return ahead

    def _overtaken(self) -> set[str]:
        """Returns the hints of the branches of which another writer expired what this commit leaves, and nothing below
        that is left: their range is another's by now, and whole. A rollback leaves what it goes to, which is below.
        """
        taken, put = ({earliest_hint(path) for path in self.proof[each] if is_snapshot(path)} for each in _MOVES)
        found = set()
        for path in self.proof["stays"]:
            branch, first = names.split_branch(path)[0], number_of_snapshot(path)
            if first is not None and earliest_hint(path) in taken - put:
                numbers = self._numbers(branch)
                found |= {earliest_hint(path)} if numbers and min(numbers) > first else set()
        return found

    def _is_there(self, path: str) -> bool:
        try:
            self.store.head(self._key(path))
        except ObjectNotFound:
            return False
        return True

    def _take(self, path: str) -> bool:
        """Tells whether the file went. A hint goes whatever it says: it is nobody's word."""
        key, data = self._key(path), self.proof["takes"][path].encode()
        return self.retirer.retire(key, self._present(key) or b"" if names.is_hint(path) else data)

    def _refuse_revived(self, due: Sequence[str]) -> None:
        """Looks once more before the newest snapshot of a branch goes, and before each schema: what a writer put there
        meanwhile builds on the one, and could not be read without the other. So does what has a number that went.
        """
        branch = names.split_branch(due[0])[0]
        if branch in self.proof.get("drops", ()) and self._in_branch(branch) - set(due):
            raise GivenUp

    def _refuse_gone_back(self) -> None:
        """Looks once more, while a branch goes, whether those that stay are whole and as far as they were. Paimon's
        fast-forward takes their end away, the lowest number first, and then copies the branch: without it nothing
        would be left of both.
        """
        drops = self.proof.get("drops", ())
        for branch, newest in (self.proof.get("newest") or {}).items() if drops else ():
            numbers = self._numbers(branch) if branch not in drops else {newest}
            if max(numbers, default=-1) < newest or max(numbers) - min(numbers) >= len(numbers):
                raise GivenUp

    def _in_branch(self, branch: str) -> set[str]:
        return files_of_branch(self.store, self.proof["table_folder"], branch)

    def _numbers(self, branch: str) -> set[int]:
        return snapshots_of_branch(self.store, self.proof["table_folder"], branch)

    def _present(self, key: str) -> bytes | None:
        try:
            return self.store.get(key)
        except ObjectNotFound:
            return None

    def _key(self, path: str) -> str:
        return join(self.proof["table_folder"], path)


def _is_from(path: str, firsts: Mapping[str, int]) -> bool:
    """Tells whether a file is a snapshot with the number that is told for its branch, or a higher one."""
    number = number_of_snapshot(path)
    return number is not None and number >= firsts.get(names.split_branch(path)[0], number + 1)
