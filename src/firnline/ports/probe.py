"""What a store can really do: asked of the store itself, never assumed. What is not known is not trusted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol


class Verdict(StrEnum):
    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """The answer to one question, and what was seen."""

    verdict: Verdict
    evidence: str

    def __bool__(self) -> bool:
        """Only a yes that was seen counts."""
        return self.verdict is Verdict.YES


def yes(evidence: str) -> ProbeAnswer:
    return ProbeAnswer(Verdict.YES, evidence)


def no(evidence: str) -> ProbeAnswer:
    return ProbeAnswer(Verdict.NO, evidence)


def unknown(evidence: str) -> ProbeAnswer:
    return ProbeAnswer(Verdict.UNKNOWN, evidence)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a bucket does with deletes, found out without changing anything. YES is the inconvenient answer."""

    versioned: ProbeAnswer
    locked: ProbeAnswer

    def warnings(self) -> tuple[str, ...]:
        """Returns what the operator should know before anything is deleted here."""
        said = []
        if self.versioned:
            said.append(f"a delete frees nothing here until old versions expire: {self.versioned.evidence}")
        if self.locked:
            said.append(f"deletes may fail here: {self.locked.evidence}")
        return tuple(said)


@dataclass(frozen=True, slots=True)
class StoreVerdicts:
    """One verdict per question about a place. `skew_ms`: by how much the store's clock is ahead of ours, if known."""

    place: str
    list: ProbeAnswer
    get: ProbeAnswer
    put: ProbeAnswer
    delete: ProbeAnswer
    put_if_absent: ProbeAnswer
    put_if_match: ProbeAnswer
    if_match_delete: ProbeAnswer
    clock: ProbeAnswer
    surroundings: Surroundings
    skew_ms: int | None = None

    def findings(self) -> dict[str, ProbeAnswer]:
        """Returns every question with its answer, in the order in which they were asked."""
        return {
            "list": self.list,
            "get": self.get,
            "put": self.put,
            "delete": self.delete,
            "put if absent refuses": self.put_if_absent,
            "put honours If-Match": self.put_if_match,
            "delete honours If-Match": self.if_match_delete,
            "clock agrees": self.clock,
            "versioned": self.surroundings.versioned,
            "object lock": self.surroundings.locked,
        }

    def paths(self) -> dict[str, str]:
        """Returns which way is taken for what the store may or may not be able to do: the weakest that is safe."""
        lease = "numbered claims, each put if absent" if self.put_if_absent else "none: runs are refused"
        condition = "by If-Match" if self.if_match_delete else "by a read just before: the store does not check itself"
        pointers = "replaced as they were read, by If-Match" if self.put_if_match else "none: they could go back"
        return {"lease and run records": lease, "pointers": pointers, "delete of one very object": condition}

    def to_json(self) -> dict[str, Any]:
        asked = {
            name: {"verdict": found.verdict.value, "evidence": found.evidence}
            for name, found in self.findings().items()
        }
        return {
            "store": self.place,
            "findings": asked,
            "paths": self.paths(),
            "clock_skew_ms": self.skew_ms,
            "warnings": list(self.surroundings.warnings()),
        }


class Probe(Protocol):
    def surroundings(self, location: str) -> Surroundings:
        """Returns what deletes meet at a location. Changes nothing."""
        ...

    def probe(self, folder: str, doomed: Sequence[str] = (), replaces: bool = False) -> StoreVerdicts:
        """Returns what can be done under `folder`, which firnline owns: objects are written there and removed again.

        `doomed` are folders in which deletes must be permitted too; no object in them is touched. Whether a write
        honours If-Match is asked if it `replaces`: no run rests on that, only pointers do. Raises where the store
        cannot be reached, does not know us, or has no such bucket.
        """
        ...
