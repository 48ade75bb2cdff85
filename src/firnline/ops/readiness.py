"""Whether a store can carry a run: known before anything is committed, never found out half-way."""

from __future__ import annotations

from firnline.errors import AccessDenied, FirnlineError, RefusedForSafety
from firnline.ports.probe import Capabilities

_HINT = "`firnline check store URI` shows what was tried"


def unfit(found: Capabilities, *, deletes: bool) -> FirnlineError | None:
    """Returns why no run may begin here, or None. `deletes`: it is going to delete files, not only change metadata."""
    needed = {"list": found.list, "read": found.get, "write": found.put}
    if deletes:
        needed["delete"] = found.delete
    for what, finding in needed.items():
        if not finding:
            return AccessDenied(f"cannot {what} in {found.place}: {finding.evidence}; nothing was changed", hint=_HINT)
    if not found.put_if_absent:
        return RefusedForSafety(
            f"{found.place} cannot keep a lease, so two processes could work on one table: "
            f"{found.put_if_absent.evidence}",
            hint=f"{_HINT}; `records: URI` keeps them in another store",
        )
    return None


def refuse_unfit(found: Capabilities, *, deletes: bool) -> None:
    """Raises where the store cannot carry a run."""
    problem = unfit(found, deletes=deletes)
    if problem is not None:
        raise problem
