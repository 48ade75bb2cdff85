"""Publishing right after firnline's own commits, never as a part of one: what was committed stays so."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from firnline.errors import FirnlineError
from firnline.ops.pointers.policy import PointerStatus
from firnline.ports.catalogs import Attempt, Commit, Step, Still, SwapOutcome, TableName, Version, always
from firnline.ports.formats import Amendment


@dataclass(frozen=True, slots=True)
class PublishingCommit:
    """Hands every verb on; `publish` is called after a commit that took the table on. Where the answer got lost it is
    not: `firnline pointers sync` and the next commit bring the pointers to the truth.
    """

    commits: Commit
    publish: Callable[[TableName], Sequence[PointerStatus]]

    def prepare(self, table: TableName, step: Step) -> Attempt:
        return self.commits.prepare(table, step)

    def commit(self, attempt: Attempt) -> SwapOutcome:
        outcome = self.commits.commit(attempt)
        if outcome is SwapOutcome.DONE:
            self._published(attempt.table)
        return outcome

    def landed(self, proof: Mapping[str, Any], now: Version, still: Still = always) -> bool:
        return self.commits.landed(proof, now, still)

    def fence(self, proofs: Sequence[Mapping[str, Any]], now: Version) -> Amendment | None:
        return self.commits.fence(proofs, now)

    def _published(self, table: TableName) -> None:
        warn_of_unpublished(table, lambda: self.publish(table))


def warn_of_unpublished(table: object, publish: Callable[[], Sequence[PointerStatus]]) -> None:
    """Publishes, and warns of whatever went wrong: the commit before is done, and no error may say that it is not."""
    try:
        problems = [each.problem for each in publish() if each.problem is not None]
    except FirnlineError as problem:
        problems = [problem]
    for each in problems:
        logging.getLogger("firnline").warning("the pointers of %s were not published: %s", table, each)
