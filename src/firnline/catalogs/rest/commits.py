"""Committing through a REST catalog: updates that the server applies, under requirements that it checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from firnline.catalogs.pointers import is_named
from firnline.catalogs.rest.catalog import RestCatalog
from firnline.catalogs.rest.fences import fences, is_fence, next_fence
from firnline.catalogs.rest.http import Unanswered
from firnline.catalogs.rest.requirements import requirements_of
from firnline.catalogs.rest.updates import is_true, refs_of, updates_of
from firnline.ports.catalogs import Attempt, Step, Still, SwapOutcome, TableName, Version, always
from firnline.ports.formats import Amendment

_CONFLICT = 409
_MISSING = 404
_TIMEOUT = 408


class RestCommits:
    """The write side of a REST catalog. The server chooses where the new metadata lies."""

    def __init__(self, catalog: RestCatalog) -> None:
        self._catalog = catalog

    def prepare(self, table: TableName, step: Step) -> Attempt:
        """Returns the step as updates. Raises RefusedForSafety where the protocol cannot say it."""
        updates = updates_of(step.base.document, step.document)
        requirements = requirements_of(step.base.document, updates)
        proof = {"base": step.base.location, "location": None, "updates": updates, "requirements": requirements}
        return Attempt(table, step, proof)

    def commit(self, attempt: Attempt) -> SwapOutcome:
        """Sends the updates. A server that failed while it had them leaves the outcome unknown.

        Applied twice they change nothing more: what they remove is gone already, what they set is set.
        """
        body = {
            "identifier": {"namespace": list(attempt.table.namespace), "name": attempt.table.name},
            "requirements": attempt.proof["requirements"],
            "updates": attempt.proof["updates"],
        }
        try:
            reply = self._catalog.http.post(self._catalog.address(attempt.table), body)
        except Unanswered:
            return SwapOutcome.UNKNOWN
        if reply.is_good:
            return SwapOutcome.DONE
        if reply.status == _CONFLICT:
            return SwapOutcome.LOST
        if reply.status >= 500 or reply.status == _TIMEOUT:  # also a proxy's own words, after it has sent ours on
            return SwapOutcome.UNKNOWN
        if reply.status == _MISSING:
            raise self._catalog.missing(attempt.table)
        raise self._catalog.refused(reply, f"a commit to {attempt.table}")

    def landed(self, proof: Mapping[str, Any], now: Version, still: Still = always) -> bool:
        """Tells whether the table is as the updates make it; whoever made it so, there is nothing left to do.

        An attempt may also have moved a pointer: a server's own database can be used as a catalog too.
        """
        if "updates" not in proof:
            return is_named(proof["location"], now)
        return all(is_true(update, now.document) for update in proof["updates"])

    def fence(self, proofs: Sequence[Mapping[str, Any]], now: Version) -> Amendment | None:
        """Returns the tags that these attempts expect to be absent; for one that moves a pointer, any that is new."""
        names = (_fence_of(proof) or next_fence(now.document) for proof in proofs if _may_land(proof, now))
        return fences(names, now.document)


def _may_land(proof: Mapping[str, Any], now: Version) -> bool:
    """Tells whether the tag is absent, or the pointer still is where this attempt expects it."""
    name = _fence_of(proof)
    return bool(proof["base"] == now.location) if name is None else name not in refs_of(now.document)


def _fence_of(proof: Mapping[str, Any]) -> str | None:
    """Returns the tag that the attempt expects to be absent; None where it moves a pointer and expects none."""
    expected = proof.get("requirements", ())
    absent = (str(each["ref"]) for each in expected if is_fence(each.get("ref", "")) and each["snapshot-id"] is None)
    return next(absent, None)
