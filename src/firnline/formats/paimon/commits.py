"""Moving a Paimon table from one version of its metadata to the next, although nothing there is compare-and-swap.

A commit is a few files that come and go, so it can be cut in the middle. It is checked against the folder, then noted
as begun in an object of firnline's own, then carried out in an order in which a reader sees an unbroken range at every
moment; whoever finds it begun and not done carries it to its end. Writers never wait for it: a new snapshot on top
changes nothing that it does. Only a rollback below the range that stays would: it is seen by the file that the range
begins with, and then everything is put back.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from firnline.errors import AlreadyExists, ObjectNotFound, OutcomeUnknown, RefusedForSafety, StoreError
from firnline.formats.paimon import names
from firnline.formats.paimon.differences import (
    difference,
    fits,
    in_order_of_putting,
    in_order_of_taking,
    is_schema,
    last_snapshots,
)
from firnline.formats.paimon.folder import read_folder
from firnline.journal.layout import notes_folder
from firnline.model.locations import identity, join, stem_of
from firnline.ports.catalogs import Attempt, Step, SwapOutcome, TableName, Version
from firnline.ports.formats import Amendment
from firnline.ports.retire import Retire
from firnline.ports.stores import ReadWrite

_BEGUN, _DONE, _GIVEN_UP = "begun", "done", "given-up"


class _RolledBack(Exception):
    """Somebody took away what the commit leaves."""


@dataclass(frozen=True, slots=True)
class PaimonCommits:
    """The write side of Paimon tables in a file system or object store."""

    store: ReadWrite
    retirer: Retire

    def prepare(self, table: TableName, step: Step) -> Attempt:
        """Returns the commit with everything that it puts and takes: all that is needed to carry it to its end."""
        if table.catalog:
            raise RefusedForSafety(
                f"{table} is in a catalog, which must know of every change", hint="nothing was changed"
            )
        found = difference(step.base.document["files"], step.document["files"])
        proof = {
            "base": step.base.location,
            "location": step.suggested,
            "table_folder": table.name,
            "id": str(uuid.uuid4()),
        }
        self._refuse_strangers(table.name, found.drops, step.base.document["files"])
        lists = {"stays": list(found.stays), "drops": list(found.drops)}
        return Attempt(table, step, {**proof, **found._asdict(), **lists})

    def commit(self, attempt: Attempt) -> SwapOutcome:
        proof = attempt.proof
        if self._noted(proof, _GIVEN_UP):
            return SwapOutcome.LOST
        if not self._noted(proof, _BEGUN):
            now = read_folder(self.store, proof["table_folder"])
            if not fits(attempt.step.base.document["files"], now, proof["drops"]):
                return SwapOutcome.LOST
            try:
                self._note(proof, _BEGUN)
            except (StoreError, OutcomeUnknown):
                return SwapOutcome.UNKNOWN
        try:
            return SwapOutcome.DONE if self._carry_out(attempt) else SwapOutcome.LOST
        except (StoreError, OutcomeUnknown):
            return SwapOutcome.UNKNOWN

    def landed(self, proof: Mapping[str, Any], now: Version) -> bool:
        """Tells whether the attempt landed. One that was begun is carried to its end first: half of it is nothing."""
        if self._noted(proof, _DONE):
            return True
        if not self._noted(proof, _BEGUN) or self._noted(proof, _GIVEN_UP):
            return False
        step = Step(now, now.document, b"", "")
        return self._carry_out(Attempt(TableName("", "", proof["table_folder"]), step, proof))

    def fence(self, proofs: Sequence[Mapping[str, Any]], now: Version) -> Amendment | None:
        """Nothing here keeps out a request that is on its way: who sends asks for the lease before every one."""
        return None

    def _carry_out(self, attempt: Attempt) -> bool:
        """Tells whether everything is done; False where a rollback came between, and everything was put back."""
        proof = attempt.proof
        try:
            for path in in_order_of_putting(proof["puts"]):
                attempt.still()
                self._put(_key(proof, path), proof["puts"][path])
            for path in in_order_of_taking(proof["takes"], proof.get("drops", ())):
                attempt.still()
                self._refuse_rolled_back(proof)
                self._refuse_revived(proof, path)
                self.retirer.retire(_key(proof, path), proof["takes"][path].encode())
            self._refuse_rolled_back(proof)
            for branch in proof.get("drops", ()):
                self.retirer.retire_folder(_key(proof, names.branch_folder(branch)))
                if self._in_branch(proof["table_folder"], branch):  # written between the last look and the last delete
                    raise _RolledBack
        except _RolledBack:
            self._give_up(attempt)
            return False
        self._note(proof, _DONE)
        return True

    def _put(self, key: str, text: str) -> None:
        """Writes a hint or a note over what is there. Any other file only where none is: its name was free, and one
        that differs is somebody else's who came between.
        """
        if key.endswith((*names.HINTS, names.PROPERTIES)):
            self.store.put(key, text.encode())
            return
        try:
            self.store.put_if_absent(key, text.encode())
        except AlreadyExists:
            if self.store.get(key) != text.encode():
                raise _RolledBack from None

    def _refuse_rolled_back(self, proof: Mapping[str, Any]) -> None:
        for path in proof["stays"]:
            try:
                self.store.head(_key(proof, path))
            except ObjectNotFound:
                raise _RolledBack from None

    def _refuse_strangers(self, folder: str, drops: Sequence[str], known: Mapping[str, str]) -> None:
        """Refuses to drop a branch with files that nobody here knows: they would stay, and the branch with them."""
        for branch in drops:
            strangers = sorted(self._in_branch(folder, branch) - known.keys())
            if strangers:
                raise RefusedForSafety(
                    f"the branch {branch} has files that are no part of its metadata: {', '.join(strangers[:5])}",
                    hint="nothing was changed; a write may be under way, or left them behind",
                )

    def _refuse_revived(self, proof: Mapping[str, Any], path: str) -> None:
        """Looks once more before the newest snapshot of a branch goes, and before each schema: what a writer put there
        meanwhile builds on the one, and could not be read without the other.
        """
        drops, branch = proof.get("drops", ()), names.split_branch(path)[0]
        looks = branch in drops and (is_schema(path) or path in last_snapshots(proof["takes"], drops))
        if looks and self._in_branch(proof["table_folder"], branch) - proof["takes"].keys():
            raise _RolledBack

    def _in_branch(self, folder: str, branch: str) -> set[str]:
        """Returns every file in a branch's folder, by its path below the table's."""
        place = join(folder, names.branch_folder(branch).rstrip("/"))
        return {identity(found.key).removeprefix(stem_of(folder)) for found in self.store.list(place)}

    def _give_up(self, attempt: Attempt) -> None:
        """Puts back what was taken or written over, and takes away again what was put: a note that is lost would be
        somebody's hold.
        """
        proof = attempt.proof
        for path in in_order_of_putting(proof["takes"]):
            attempt.still()
            with suppress(AlreadyExists):
                self.store.put_if_absent(_key(proof, path), proof["takes"][path].encode())
        for path in in_order_of_taking(proof["puts"]):
            attempt.still()
            if path in proof["replaces"]:
                self.store.put(_key(proof, path), proof["replaces"][path].encode())
            else:
                self.retirer.retire(_key(proof, path), proof["puts"][path].encode())
        self._note(proof, _GIVEN_UP)

    def _note(self, proof: Mapping[str, Any], what: str) -> None:
        with suppress(AlreadyExists):
            self.store.put_if_absent(_note_key(proof, what), json.dumps({"commit": proof["id"]}).encode())

    def _noted(self, proof: Mapping[str, Any], what: str) -> bool:
        try:
            self.store.head(_note_key(proof, what))
        except ObjectNotFound:
            return False
        return True


def _key(proof: Mapping[str, Any], path: str) -> str:
    return join(proof["table_folder"], path)


def _note_key(proof: Mapping[str, Any], what: str) -> str:
    return join(notes_folder(proof["table_folder"]), f"{proof['id']}.{what}")
