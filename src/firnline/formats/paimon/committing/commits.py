"""Moving a Paimon table from one version of its metadata to the next, although nothing there is compare-and-swap.

A commit is a few files that come and go, so it can be cut in the middle. It is checked against the folder, then noted
as begun in an object of firnline's own, then carried out in an order in which a reader sees an unbroken range at every
moment; the process that finds it begun and not done carries it to its end. Writers never wait for it: a new snapshot on
top changes nothing that it does. Only a rollback below the range that stays would: it is seen by the file that the
range begins with, and then everything is put back.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from firnline.errors import OutcomeUnknown, RefusedForSafety, StoreError
from firnline.formats.commit_notes import CommitNotes, CommitStage, is_commit
from firnline.formats.paimon import names
from firnline.formats.paimon.committing.differences import difference, fits, newest_of, signs_of
from firnline.formats.paimon.committing.present import files_of_branch, must_be_made_anew
from firnline.formats.paimon.committing.steps import Carrying, GivenUp
from firnline.formats.paimon.reading.folder import read_whole
from firnline.journal.layout import PROPERTIES, notes_folder
from firnline.model.locations import is_dotted
from firnline.ports.catalogs import Attempt, Step, Still, SwapOutcome, TableName, Version, always
from firnline.ports.formats import Amendment
from firnline.ports.retire import Retire
from firnline.ports.stores import ReadWrite

_MOVED = ("takes", "puts", "replaces", "stays", "signs")


@dataclass(frozen=True, slots=True)
class PaimonCommits:
    """The write side of a Paimon table in a file system or object store: of the one in `folder`, and of no other."""

    store: ReadWrite
    retirer: Retire
    folder: str

    @property
    def notes(self) -> str:
        return notes_folder(self.folder)

    def prepare(self, table: TableName, step: Step) -> Attempt:
        """Returns the commit with everything that it puts and takes: all that is needed to carry it to its end."""
        if table.catalog:
            raise RefusedForSafety(
                f"{table} is in a catalog, which must know of every change", hint="nothing was changed"
            )
        before = step.base.document["files"]
        found = difference(before, step.document["files"])
        proof = {
            "base": step.base.location,
            "location": step.suggested,
            "table_folder": table.name,
            "id": str(uuid.uuid4()),
            "note": before.get(PROPERTIES),
            "newest": newest_of(before),
            "signs": signs_of(before),
        }
        self._refuse_strangers(table.name, found.drops, before)
        return Attempt(table, step, {**proof, **found._asdict(), "drops": list(found.drops)})

    def commit(self, attempt: Attempt) -> SwapOutcome:
        proof = attempt.proof
        notes = self._notes(proof)
        if notes.has(CommitStage.GIVEN_UP):
            return SwapOutcome.LOST
        if not notes.has(CommitStage.BEGUN):
            now = read_whole(self.store, proof["table_folder"])
            if not fits(attempt.step.base.document["files"], now, proof["drops"]):
                return SwapOutcome.LOST
            self._refuse_bare(Carrying(self.store, self.retirer, proof, attempt.still))
            try:
                notes.put(CommitStage.BEGUN)
            except (StoreError, OutcomeUnknown):
                return SwapOutcome.UNKNOWN
        try:
            done = self._carry_out(proof, attempt.still)
        except (StoreError, OutcomeUnknown):
            return SwapOutcome.UNKNOWN
        if not done and proof["drops"]:  # a number that was given again would look like the one that was planned
            raise RefusedForSafety(
                f"another writer worked on {', '.join(proof['drops'])} while it was being dropped",
                hint="all of it was put back; plan again, if it is still to go",
            )
        return SwapOutcome.DONE if done else SwapOutcome.LOST

    def landed(self, proof: Mapping[str, Any], now: Version, still: Still = always) -> bool:
        """Tells whether the attempt landed. One that was begun is carried to its end first: half of it is nothing; or
        given up, if what it takes is needed by now: hours may have passed.

        The proof comes from a record, which is no authority: it moves metadata files of this table, whatever it says.
        """
        proof = self._bound(proof)
        notes = self._notes(proof)
        if notes.has(CommitStage.DONE):
            return True
        if not notes.has(CommitStage.BEGUN) or notes.has(CommitStage.GIVEN_UP):
            return False
        if must_be_made_anew(self.store, proof, notes.begun_ms()):
            return self._give_up(Carrying(self.store, self.retirer, proof, still))
        return self._carry_out(proof, still)

    def _bound(self, proof: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns the proof, of this table's folder. Raises RefusedForSafety where it names anything but metadata."""
        moved = (str(path) for each in _MOVED for path in proof.get(each) or ())
        strange = [path for path in moved if not names.is_metadata(path)]
        strange += [branch for branch in map(str, proof.get("drops") or ()) if is_dotted(names.branch_folder(branch))]
        if strange or not is_commit(proof["id"]):
            raise RefusedForSafety(
                f"the record of a commit to {self.folder} names {[*strange, proof['id']][0]}, which no commit writes",
                hint="nothing was changed; the record was edited, or is forged",
            )
        return {**proof, "table_folder": self.folder}

    def fence(self, proofs: Sequence[Mapping[str, Any]], now: Version) -> Amendment | None:
        """Nothing here keeps out a request that is on its way: who sends asks for the lease before every one."""
        return None

    def _carry_out(self, proof: Mapping[str, Any], still: Still) -> bool:
        """Tells whether everything is done; False if another writer came between, and everything was put back."""
        carrying = Carrying(self.store, self.retirer, proof, still)
        try:
            carrying.carry_out()
        except GivenUp:
            return self._give_up(carrying)
        self._notes(proof).put(CommitStage.DONE)
        return True

    def _give_up(self, carrying: Carrying) -> bool:
        carrying.give_up()
        self._notes(carrying.proof).put(CommitStage.GIVEN_UP)
        return False

    def _refuse_bare(self, carrying: Carrying) -> None:
        """Raises RefusedForSafety if the files of a snapshot or tag that would be put are gone: the commit would be
        given up, and so would every further try.
        """
        if bare := carrying.bare():
            raise RefusedForSafety(
                f"the files of {', '.join(bare[:5])} in {self.folder} are gone: the writers' own expiry took them, or "
                "is taking them just now",
                hint="nothing was changed; try again when it is over",
            )

    def _refuse_strangers(self, folder: str, drops: Sequence[str], known: Mapping[str, str]) -> None:
        """Raises RefusedForSafety if a branch that goes has files that nobody here knows: they would stay, and the
        branch with them.
        """
        for branch in drops:
            strangers = sorted(files_of_branch(self.store, folder, branch) - known.keys())
            if strangers:
                raise RefusedForSafety(
                    f"the branch {branch} has files that are no part of its metadata: {', '.join(strangers[:5])}",
                    hint="nothing was changed; a write may be under way, or left them behind",
                )

    def _notes(self, proof: Mapping[str, Any]) -> CommitNotes:
        return CommitNotes(self.store, proof["table_folder"], proof["id"])
