"""One snapshot file, tag or long-lived changelog: JSON of one shape, and whatever else its writer put there."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from firnline.errors import UnsupportedFormat
from firnline.formats.paimon.reading import fields
from firnline.model.times import HOUR_MS, SECOND_MS

SNAPSHOT_VERSION = 3
TAG_CREATED, TAG_RETAINED = "tagCreateTime", "tagTimeRetained"
WESTERNMOST_MS, EASTERNMOST_MS = -12 * HOUR_MS, 14 * HOUR_MS
"""How far the zones of the world lie from UTC."""


@dataclass(frozen=True, slots=True)
class ListFile:
    """A manifest list by its name, with its size where the snapshot says it."""

    name: str
    size: int | None


@dataclass(frozen=True, slots=True)
class PaimonSnapshot:
    """What a snapshot says that firnline goes by. `content` tells it from another one of the same number; `user` is
    the job that wrote it.
    """

    number: int
    schema: int
    time_ms: int
    kind: str
    base: ListFile
    delta: ListFile
    changelog: ListFile | None
    index: str | None
    statistics: str | None
    user: str

    @property
    def content(self) -> tuple[str, str]:
        return self.base.name, self.delta.name


def parse_snapshot(text: str, where: str) -> PaimonSnapshot:
    """Returns the snapshot. Raises UnsupportedFormat for a version that is not known: its fields may mean anything."""
    document = fields.parse(text, where)
    version = document.get("version")
    if version != SNAPSHOT_VERSION or isinstance(version, bool):
        raise UnsupportedFormat(
            f"snapshot version {version!r} is not understood: {where}",
            hint=f"firnline reads Paimon's snapshots of version {SNAPSHOT_VERSION}; nothing was changed",
        )
    kind = document.get("commitKind")
    changelog = fields.file_name_or_none(document, "changelogManifestList", where)
    return PaimonSnapshot(
        number=fields.whole(document, "id", where),
        schema=fields.whole(document, "schemaId", where),
        time_ms=fields.whole(document, "timeMillis", where),
        kind=kind if isinstance(kind, str) else "",
        base=_list(document, "baseManifestList", where),
        delta=_list(document, "deltaManifestList", where),
        changelog=None if changelog is None else _list(document, "changelogManifestList", where),
        index=fields.file_name_or_none(document, "indexManifest", where),
        statistics=fields.file_name_or_none(document, "statistics", where),
        user=str(document.get("commitUser")),
    )


def _list(document: fields.Fields, name: str, where: str) -> ListFile:
    return ListFile(fields.file_name(document, name, where), fields.whole_or_none(document, f"{name}Size", where))


@dataclass(frozen=True, slots=True)
class Lasting:
    """How long a tag stays from when it was made. Its writer noted that moment on its own clock, without a zone:
    `local_ms` is what it means in this machine's zone, `latest_ms` the last moment that it can mean in any zone.
    """

    local_ms: int
    latest_ms: int
    retained_ms: int

    def ends_ms(self, written_ms: int | None) -> int:
        """Returns until when the tag stays, by the later of both readings: this machine's zone, as Paimon reads it, and
        the store's own time of the tag's file. Where the store does not tell that, by the latest of all zones: a tag
        that goes hours too early takes with it what an operator asked to keep.
        """
        made_ms = self.latest_ms if written_ms is None else max(self.local_ms, written_ms)
        return made_ms + self.retained_ms


def tag_lasting(text: str, where: str) -> Lasting | None:
    """Returns how long a tag stays; None for one without end. Raises where its times make no sense."""
    document = fields.parse(text, where)
    created, retained = document.get(TAG_CREATED), document.get(TAG_RETAINED)
    if created is None or retained is None:
        return None
    endless = isinstance(retained, float) and not math.isfinite(retained)
    if not isinstance(retained, int | float) or isinstance(retained, bool) or endless:
        raise fields.damaged(where, f"{TAG_RETAINED} is {retained!r}, not a number of seconds")
    return Lasting(*_readings(created, where), round(retained * SECOND_MS))


def _readings(created: Any, where: str) -> tuple[int, int]:
    """Returns a time without a zone as one of this machine's zone, where a clock was turned back the later of the two
    instants, and as one of the westernmost zone.
    """
    try:
        year, month, day, hour, minute, *rest = created
        second, nanos = (*rest, 0, 0)[:2]
        moment = datetime(year, month, day, hour, minute, second, fold=1)
        readings = (moment.timestamp(), moment.replace(tzinfo=UTC).timestamp() - WESTERNMOST_MS // SECOND_MS)
        local_ms, western_ms = (round(each) * SECOND_MS + int(nanos) // 1_000_000 for each in readings)
        return local_ms, max(local_ms, western_ms)
    except (TypeError, ValueError, OverflowError) as damage:
        raise fields.damaged(where, f"{TAG_CREATED} is {created!r}: {damage}") from damage
