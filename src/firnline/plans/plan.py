"""The plan with its stages, and its JSON form, which other programs rely on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil, floor
from typing import TYPE_CHECKING, Any

from firnline.errors import BlastRadiusExceeded, FirnlineError, RefusedForSafety
from firnline.model.files import Tally, Totals
from firnline.model.snapshots import SnapshotId
from firnline.model.times import format_instant
from firnline.plans.graph.facts import SnapshotGraph
from firnline.plans.kinds import ERASURE, EXPIRY
from firnline.plans.metadata_versions import MetadataVersions
from firnline.plans.stages import Stage, stages_json
from firnline.ports.abilities import SideObject
from firnline.ports.formats import UndoWindow

if TYPE_CHECKING:
    from firnline.plans.erasure import Erasure
    from firnline.plans.orphans import OrphanPlan
    from firnline.policy.prices import Costs

PLAN_VERSION = 1


@dataclass(frozen=True, slots=True)
class KeptSnapshot:
    id: SnapshotId
    timestamp_ms: int
    refs: tuple[str, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExpiredSnapshot:
    id: SnapshotId
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class Conflict:
    """Why nothing may go as long as another table is in doubt, and what the operator can do."""

    why: str
    hint: str


@dataclass(frozen=True, slots=True)
class Archive:
    """What is handed to a tier before the commit: which snapshots, and as which table they are found there. `small`
    and `large` is what has to be copied for it, at most: small objects stay in the standard class. `bundle` is the size
    of the objects in which the large ones lie together, None where each is one. `costs` is None where they are not
    known.
    """

    tier: str
    table: str
    root: str
    storage_class: str | None
    snapshots: tuple[SnapshotId, ...]
    small: Tally = field(default_factory=Tally)
    large: Tally = field(default_factory=Tally)
    bundle: int | None = None
    costs: Costs | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "copies": {**tally_json(self.small + self.large), "small": tally_json(self.small)},
            "costs": None if self.costs is None else self.costs.to_json(),
            "tier": self.tier,
            "table": self.table,
            "root": self.root,
            "class": self.storage_class,
            "bundle": self.bundle,
            "snapshots": list(self.snapshots),
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """What would go and why the rest stays. `kept` is None where nothing expires, since then nothing was walked.

    `refused` says that it would remove too much, `conflict` that another table is in doubt: then nothing may go.
    `asked` is how many other tables were asked what they need; None where the operator says that none is to be.

    `tagged` are snapshots that stay and yet leave the table's own row, with the tag that will hold each. What the table
    has beside snapshots and refs stays or goes too. `seen` is what refs that are dropped held, by name. `drawing` is
    the history before and after, of a format whose commits rewrite it. `erasure` is what goes from snapshots that stay.
    `orphans` is what a listing showed that was taken before all else; `victims` are these and what expires.
    `cap` is the share of the table that may go at once. `waiting` are runs on the table that have not ended. `live` are
    the files of the present snapshot as metadata alone tells, None where it does not. `metadata_versions` are counted
    beside all of that: no snapshot needs them; None for a format without such.
    """

    table: str
    format: str
    location: str
    uuid: str
    fence: str
    now_ms: int
    policy: str
    keep: tuple[KeptSnapshot, ...]
    expire: tuple[ExpiredSnapshot, ...]
    expire_refs: tuple[str, ...]
    kept: Totals | None
    victims: Totals
    spared: Mapping[str, Tally]
    engine: str
    units_opened: int
    stages: tuple[Stage, ...]
    by_own_retention: bool = False
    undo: UndoWindow = UndoWindow.AFTER_COMMIT
    refused: str | None = None
    conflict: Conflict | None = None
    asked: int | None = 0
    run: str | None = None
    notes: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    tagged: Mapping[SnapshotId, str] = field(default_factory=dict)
    kept_side_objects: tuple[SideObject, ...] = ()
    expired_side_objects: tuple[SideObject, ...] = ()
    seen: Mapping[str, str] = field(default_factory=dict)
    drawing: SnapshotGraph | None = None
    archive: Archive | None = None
    erasure: Erasure | None = None
    orphans: OrphanPlan | None = None
    metadata_versions: MetadataVersions | None = None
    live: Tally | None = None
    cap: float = 1.0

    @property
    def refusal(self) -> FirnlineError | None:
        """What a run of this plan would be refused with; None if it may go on."""
        if self.conflict is not None:
            return RefusedForSafety(self.conflict.why, hint=self.conflict.hint)
        return BlastRadiusExceeded(self.refused, hint="; ".join(self.ways_out)) if self.refused else None

    @property
    def ways_out(self) -> tuple[str, ...]:
        """What lets a plan through that would remove too much, each as a sentence."""
        most = floor(100 * min(0.5, self.cap))
        part = "half" if most == 50 else f"{most}%"
        bounded = f"`--at-most {most}%` removes at most {part} now, the oldest first; repeat it for the rest"
        kept = self.kept.all if self.kept is not None else Tally()
        share = min(100, ceil(100 * share_removed(kept, self.victims.all)[1]))
        lifted = f"`--blast-radius {share}%` lets all of it go at once, if that is really meant"
        return (bounded, lifted) if most and len(self.expire) > 1 and self.orphans is None else (lifted,)

    def to_json(self) -> dict[str, Any]:
        """Returns the contract of `plan --json`: ids are strings, totals come by kind, instants are ISO 8601."""
        return {
            "version": PLAN_VERSION,
            "kind": EXPIRY if self.erasure is None else ERASURE,
            "table": self.table,
            "format": self.format,
            "location": self.location,
            "uuid": self.uuid,
            "fence": self.fence,
            "now": format_instant(self.now_ms),
            "policy": self.policy,
            "keep": [_kept_json(each) for each in self.keep],
            "expire": [each.id for each in self.expire],
            "expire_refs": list(self.expire_refs),
            "seen": dict(self.seen),
            "tagged": dict(self.tagged),
            "beside": {
                "keep": [_beside_json(each) for each in self.kept_side_objects],
                "expire": [_beside_json(each) for each in self.expired_side_objects],
            },
            "live": None if self.live is None else tally_json(self.live),
            "kept": None if self.kept is None else totals_json(self.kept),
            "victims": totals_json(self.victims),
            "spared": {reason: tally_json(tally) for reason, tally in self.spared.items()},
            "engine": self.engine,
            "units_opened": self.units_opened,
            "stages": stages_json(self.stages),
            "undo": self.undo.value,
            "refused": self.refused if self.conflict is None else self.conflict.why,
            "conflict": None if self.conflict is None else self.conflict.why,
            "asked": self.asked,
            "notes": list(self.notes),
            "drawing": None if self.drawing is None else _drawn(self.drawing),
            "archive": None if self.archive is None else self.archive.to_json(),
            "erasure": None if self.erasure is None else self.erasure.to_json(),
            "orphans": None if self.orphans is None else self.orphans.found_json(),
            "metadata_versions": None if self.metadata_versions is None else self.metadata_versions.to_json(),
            "run": self.run,
        }


def share_removed(kept: Tally, victims: Tally) -> tuple[str, float]:
    """Returns the larger share of a table that goes, of its files or of its bytes, and which of them it is."""
    shares = {
        "files": victims.files / max(1, kept.files + victims.files),
        "bytes": victims.bytes / max(1, kept.bytes + victims.bytes),
    }
    return max(shares.items(), key=lambda item: item[1])


def _kept_json(each: KeptSnapshot) -> dict[str, Any]:
    return {
        "snapshot": each.id,
        "timestamp": format_instant(each.timestamp_ms),
        "refs": list(each.refs),
        "reasons": list(each.reasons),
    }


def _beside_json(each: SideObject) -> dict[str, str]:
    return {"kind": each.kind, "name": each.name, "why": each.why}


def totals_json(totals: Totals) -> dict[str, Any]:
    by_kind = {kind.value: tally_json(tally) for kind, tally in totals.by_kind.items()}
    return {**tally_json(totals.all), "by_kind": by_kind}


def tally_json(tally: Tally) -> dict[str, int]:
    return {"files": tally.files, "bytes": tally.bytes}


def _drawn(graph: SnapshotGraph) -> dict[str, Any]:
    from firnline.plans.graph.text import drawing_json

    return drawing_json(graph)
