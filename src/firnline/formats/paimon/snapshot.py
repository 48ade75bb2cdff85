"""One snapshot file, tag or long-lived changelog: JSON of one shape, and whatever else its writer put there."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from firnline.errors import UnsupportedFormat
from firnline.formats.paimon import fields
from firnline.model.times import SECOND_MS

SNAPSHOT_VERSION = 3


@dataclass(frozen=True, slots=True)
class ListFile:
    """A manifest list by its name, with its size where the snapshot says it."""

    name: str
    size: int | None


@dataclass(frozen=True, slots=True)
class PaimonSnapshot:
    """What a snapshot says that firnline goes by. `content` tells it from another one of the same number."""

    number: int
    schema: int
    time_ms: int
    kind: str
    base: ListFile
    delta: ListFile
    changelog: ListFile | None
    index: str | None
    statistics: str | None

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
    )


def _list(document: fields.Fields, name: str, where: str) -> ListFile:
    return ListFile(fields.file_name(document, name, where), fields.whole_or_none(document, f"{name}Size", where))


def tag_ends_ms(text: str, where: str) -> int | None:
    """Returns until when a tag stays; None for one without end.

    Its writer noted the time on its own clock, without a zone; like Paimon, we read it as this machine's zone, and
    where a clock was turned back as the later of the two instants.
    """
    document = fields.parse(text, where)
    created, retained = document.get("tagCreateTime"), document.get("tagTimeRetained")
    if created is None or retained is None:
        return None
    endless = isinstance(retained, float) and not math.isfinite(retained)
    if not isinstance(retained, int | float) or isinstance(retained, bool) or endless:
        raise fields.damaged(where, f"tagTimeRetained is {retained!r}, not a number of seconds")
    return _local_ms(created, where) + round(retained * SECOND_MS)


def _local_ms(created: Any, where: str) -> int:
    try:
        year, month, day, hour, minute, *rest = created
        second, nanos = (*rest, 0, 0)[:2]
        moment = datetime(year, month, day, hour, minute, second, fold=1)
        return round(moment.timestamp()) * SECOND_MS + int(nanos) // 1_000_000
    except (TypeError, ValueError, OverflowError) as damage:
        raise fields.damaged(where, f"tagCreateTime is {created!r}: {damage}") from damage
