"""Moving an Icechunk repository from one version to the next, through the icechunk library.

The library makes each change by itself: a ref that comes or goes, and an expiry. A commit is several of them, so it
can be cut in the middle. It is checked against a fresh read, noted as begun in an object of firnline's own, and then
carried out in an order in which no snapshot that stays is ever without its ref (`carrying.py`).

What others see meanwhile:

- A reader finds every ref that stays at every moment, and what it leads to: no object is deleted by a commit. On
  version 1 lines are cut off one after the other, on version 2 all at once.
- A process that dies leaves more refs than were meant, or a history that is not yet cut off. The next one carries the
  commit on by its proof (`landed`), or gives it up if something else was decided meanwhile.
- The library's own expiry beside this one ends as the later of the two thresholds alone would.
- A tag that is made on a snapshot that is about to go holds it: before the first look the commit loses; after it, the
  library looks at refs itself. On version 1 a tag may still come after that look. Its snapshot and all before it are
  there until a purge, which reads the refs again.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from firnline.errors import OutcomeUnknown, RefusedForSafety, StoreError
from firnline.formats.commit_notes import CommitNotes, CommitStage
from firnline.formats.icechunk.committing.abandoning import Abandoned
from firnline.formats.icechunk.committing.access import refuse_old_library
from firnline.formats.icechunk.committing.carrying import RepositoryChange
from firnline.formats.icechunk.committing.foretelling import foretold, unlike
from firnline.formats.icechunk.committing.library import LibraryRepository
from firnline.formats.icechunk.committing.proofs import ExpiryProof, proof_in, proof_of, refuse_paths
from firnline.formats.icechunk.committing.properties import read_properties
from firnline.formats.icechunk.reading.repository import IcechunkRepository, read_repository
from firnline.formats.icechunk.versions import place_of, version_name
from firnline.journal.layout import notes_folder
from firnline.model.snapshots import MAIN, RefKind
from firnline.ports.catalogs import Attempt, Step, Still, SwapOutcome, TableName, Version, always
from firnline.ports.formats import Amendment, State
from firnline.ports.stores import ReadWrite


@dataclass(frozen=True, slots=True)
class IcechunkCommits:
    """The write side of the repository at `location`, and of no other."""

    store: ReadWrite
    settings: Mapping[str, str] = field(repr=False)
    location: str

    @property
    def notes(self) -> str:
        return notes_folder(self.location)

    def refuse_without_library(self, state: State) -> None:
        """Raises UnsupportedFormat where the library is missing, or does not know the repository's version."""
        refuse_old_library(state.document["repository"].spec)

    def prepare(self, table: TableName, step: Step) -> Attempt:
        """Returns the commit with all that is needed to carry it to its end. Raises RefusedForSafety where the library
        would not make of the base what the step says.
        """
        proof = proof_of(step, str(uuid.uuid4()))
        _refuse_untrue(step.base.document["repository"], proof)
        named = {"base": step.base.location, "location": step.suggested}
        return Attempt(table, step, {**named, **proof.to_json()})

    def commit(self, attempt: Attempt) -> SwapOutcome:
        proof = proof_in(attempt.proof, self.location)
        notes = self._notes(proof)
        if notes.has(CommitStage.GIVEN_UP):
            return SwapOutcome.LOST
        if notes.has(CommitStage.DONE):
            return SwapOutcome.DONE
        now = read_repository(self.store, self.location)
        refuse_paths(proof, now.spec, self.location)
        if not notes.has(CommitStage.BEGUN) and not self._is_at(now, attempt.proof["base"]):
            return SwapOutcome.LOST
        opened = self._open(now)  # what the library cannot do is told before anything is noted
        try:
            notes.put(CommitStage.BEGUN)
            self._carry_out(RepositoryChange(self.store, now, opened, proof, attempt.still, notes.begun_ms()))
        except (StoreError, OutcomeUnknown):
            return SwapOutcome.UNKNOWN
        except Abandoned as abandoned:
            raise self._refusal(abandoned) from abandoned
        return SwapOutcome.DONE

    def landed(self, proof: Mapping[str, Any], now: Version, still: Still = always) -> bool:
        """Tells whether the attempt landed. One that was begun is carried to its end first, or given up if something
        else came between: hours may have passed.

        The proof comes from a record, which is no authority: it changes refs of this repository, whatever it says, and
        expires nothing that the library would not expire by the same threshold as the repository is now.
        """
        found = proof_in(proof, self.location)
        notes = self._notes(found)
        if notes.has(CommitStage.DONE):
            return True
        if not notes.has(CommitStage.BEGUN) or notes.has(CommitStage.GIVEN_UP):
            return False
        here = read_repository(self.store, self.location)
        refuse_paths(found, here.spec, self.location)
        try:
            opened = self._open(here)
            self._carry_out(RepositoryChange(self.store, here, opened, found, still, notes.begun_ms()))
        except Abandoned as abandoned:
            if abandoned.serious:
                raise self._refusal(abandoned) from abandoned
            return False
        return True

    def fence(self, proofs: Sequence[Mapping[str, Any]], now: Version) -> Amendment | None:
        """Nothing here keeps out a request that is on its way: who sends asks for the lease before every one."""
        return None

    def _is_at(self, now: IcechunkRepository, base: str) -> bool:
        name = version_name(now, read_properties(self.store, self.location))
        return place_of(name)[1] == place_of(base)[1]

    def _carry_out(self, change: RepositoryChange) -> None:
        """Carries the commit to its end, and notes it. Raises Abandoned, and notes that too."""
        try:
            change.carry_out()
        except Abandoned:
            self._notes(change.proof).put(CommitStage.GIVEN_UP)
            raise
        self._notes(change.proof).put(CommitStage.DONE)

    def _open(self, now: IcechunkRepository) -> LibraryRepository:
        """Returns the repository as the library opens it. Raises RefusedForSafety where that is another one, or where
        the library does not see a ref: it would expire what only that one holds.
        """
        refuse_old_library(now.spec)
        opened = LibraryRepository.at(self.location, self.settings)
        seen, main = opened.names(), opened.points_to(RefKind.BRANCH, MAIN)
        if main not in now.snapshots or any((ref.kind, ref.name) not in seen for ref in now.refs):
            now = read_repository(self.store, self.location)  # it may have changed between the two looks
        unseen = [f"the {ref.kind} {ref.name}" for ref in now.refs if (ref.kind, ref.name) not in seen]
        if main not in now.snapshots:
            unseen.append(f"the same branch {MAIN}")
        if unseen:
            raise RefusedForSafety(
                f"the icechunk library does not see {unseen[0]} in {self.location}",
                hint="nothing was changed; it may reach another store, or not know how a ref's name was written",
            )
        return opened

    def _refusal(self, abandoned: Abandoned) -> RefusedForSafety:
        return RefusedForSafety(
            f"the commit to {self.location} was given up: {abandoned.why}",
            hint="no object was deleted; refs that it had made or deleted before stay so; plan again",
        )

    def _notes(self, proof: ExpiryProof) -> CommitNotes:
        return CommitNotes(self.store, self.location, proof.id)


def _refuse_untrue(repository: IcechunkRepository, proof: ExpiryProof) -> None:
    """Raises RefusedForSafety unless the library would make of the repository exactly what the step says."""
    told = foretold(repository, proof)
    if wrong := list(told.refused) or unlike(proof, told):
        raise RefusedForSafety(
            f"Icechunk's own expiry cannot do what was decided for {repository.location}: {'; '.join(wrong[:3])}",
            hint="nothing was changed",
        )
