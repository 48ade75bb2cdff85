"""All that there is to see of one run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firnline.errors import FirnlineError
from firnline.model.times import format_instant

if TYPE_CHECKING:
    from firnline.journal.audit.entries import AuditEntry
    from firnline.journal.outcomes import OutcomeAccount
    from firnline.lake import Lake
    from firnline.ops.runs.status import RunStatus

FILES_SHOWN = 200


@dataclass(frozen=True, slots=True)
class RunReport:
    """A run as it stood at an instant: what it planned, how far it came, what became of its files, and who did what.
    `audit` is None where no log is kept, or where it cannot be read.
    """

    made_ms: int
    status: RunStatus
    account: OutcomeAccount
    audit: tuple[AuditEntry, ...] | None

    @property
    def done(self) -> int:
        """How many files of the list have met their end."""
        return sum(each.files for each in self.account.by_reason.values())

    def to_json(self) -> dict[str, Any]:
        """Returns the contract of `report RUN --json`: the run as `runs show` says it, its plan, and its files."""
        return {
            "made_at": format_instant(self.made_ms),
            "run": self.status.to_json(),
            "plan": dict(self.status.run.plan),
            **self.account.to_json(),
            "audit": None if self.audit is None else [{"who": dict(e.who), "news": dict(e.news)} for e in self.audit],
        }


def run_report(lake: Lake, run: str, *, shown: int = FILES_SHOWN) -> RunReport:
    """Returns the run, with so many of its files one by one. Raises where there is no such run."""
    status = lake.run(run)
    return RunReport(lake.places.clock(), status, lake.outcomes(status.id, shown=shown), _audit(lake, status.id))


def _audit(lake: Lake, run: str) -> tuple[AuditEntry, ...] | None:
    try:
        return tuple(lake.audit(run=run))
    except FirnlineError:  # no log is kept, or it is damaged: `audit verify` says which
        return None
