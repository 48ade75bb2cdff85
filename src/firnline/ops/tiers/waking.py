"""Making bundles readable that lie in an archive class: a formal act, which is written down before anything is asked
for, and a wait of hours, during which no lease is held. A second demand goes on where the first one stopped: what
was asked for is on its way, and what came stays readable for some days.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, TypeVar
from uuid import uuid4

from firnline.errors import UnreadableMetadata, UsageError
from firnline.model.files import Tally
from firnline.model.locations import join
from firnline.model.snapshots import SnapshotId
from firnline.model.times import format_instant
from firnline.ops.tiers.bundling import Bundles
from firnline.ports.copying import Stored
from firnline.ports.progress import Progress
from firnline.ports.stores import ReadWrite
from firnline.ports.thawing import Warmth

SPEEDS = ("bulk", "standard", "expedited")
_RESTORES = "restores"
_THREADS = 16
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 300.0
_MOST_TEXT = 1_000

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Inquiry:
    """A formal demand for what sleeps in an archive, or shall be erased: for which case, by whom, how quickly bundles
    shall come and for how many days they shall stay readable. `wait`: until they are there.
    """

    case: str
    by: str
    speed: str = SPEEDS[0]
    days: int = 7
    wait: bool = True

    def refuse_vague(self) -> None:
        """Raises UsageError where it does not say for what, and by whom, or how."""
        if not self.case.strip() or not self.by.strip() or max(len(self.case), len(self.by)) > _MOST_TEXT:
            raise UsageError(
                "that is done for a case, by a person",
                hint="name both: --case INCIDENT-7 --by 'A. Person'",
            )
        if self.speed not in SPEEDS:
            raise UsageError(f"{self.speed[:64]!r} is no speed of a restore", hint=f"one of {', '.join(SPEEDS)}")
        if not 1 <= self.days <= 365:
            raise UsageError(f"{self.days} days are not allowed", hint="from 1 to 365")


@dataclass(frozen=True, slots=True)
class Awake:
    """How many of the bundles of a snapshot can be read, of how many."""

    readable: int
    bundles: Tally

    @property
    def is_all(self) -> bool:
        return self.readable == self.bundles.files


@dataclass(frozen=True, slots=True)
class Awaited:
    """A snapshot that was asked for and cannot be read yet."""

    snapshot: SnapshotId
    source: str
    awake: Awake
    inquiry: Inquiry

    def to_json(self) -> dict[str, Any]:
        size, inquiry = self.awake.bundles, self.inquiry
        return {
            "snapshot": self.snapshot,
            "from": self.source,
            "readable": self.awake.readable,
            "bundles": size.files,
            "bytes": size.bytes,
            "speed": inquiry.speed,
            "days": inquiry.days,
        }


@dataclass(frozen=True, slots=True)
class RestoreNote:
    """One line of what was asked for: `event` is `requested` or `restored`."""

    at: str
    event: str
    snapshot: SnapshotId
    to: str
    case: str
    by: str
    speed: str
    bundles: int
    bytes: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Waking:
    """Bundles of one snapshot, which are asked for. `store` is the tier's, in which the demand is written down."""

    bundles: Bundles
    store: ReadWrite
    progress: Progress
    now: Callable[[], int]
    sleep: Callable[[float], None] = time.sleep

    def wake(self, needed: Mapping[str, Stored], snapshot: SnapshotId, to: str, inquiry: Inquiry) -> Awake:
        """Returns how many of the bundles can be read; all of them where the inquiry waits.

        Raises ObjectNotFound where one is gone, before anything is asked for.
        """
        inquiry.refuse_vague()
        states = self._looked_at(needed)
        self.note("requested", needed, snapshot, to, inquiry)
        left = self._asked(states, inquiry)
        left = self._waited(left, len(needed), inquiry) if inquiry.wait else left
        return Awake(len(needed) - len(left), _tally(needed))

    def _asked(self, states: Mapping[str, Warmth], inquiry: Inquiry) -> list[str]:
        """Asks for what is frozen. Returns what cannot be read yet."""
        frozen = [key for key, warmth in states.items() if warmth is Warmth.FROZEN]
        _each(frozen, lambda key: self.bundles.thaw.request(key, inquiry.days, inquiry.speed))
        return [key for key, warmth in states.items() if warmth is not Warmth.READABLE]

    def note(self, event: str, needed: Mapping[str, Stored], snapshot: SnapshotId, to: str, inquiry: Inquiry) -> None:
        """Writes down what is asked for, or came: beside the bundles, where nothing is ever replaced."""
        at, size = format_instant(self.now()), _tally(needed)
        said = RestoreNote(at, event, snapshot, to, inquiry.case, inquiry.by, inquiry.speed, size.files, size.bytes)
        key = join(_folder(self.bundles), f"{self.now():014d}-{uuid4().hex}.json")
        self.store.put_if_absent(key, json.dumps(said.to_json(), ensure_ascii=False).encode())

    def _waited(self, left: list[str], every: int, inquiry: Inquiry) -> list[str]:
        """Waits until all can be read. What is frozen again, because its days were over before the last one came, is
        asked for once more.
        """
        pause = _FIRST_PAUSE_S
        while left:
            self.progress.step("waiting for bundles", every - len(left), every)
            self.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_S)
            left = self._asked(self._looked_at(left), inquiry)
        return left

    def _looked_at(self, keys: Iterable[str]) -> dict[str, Warmth]:
        every = list(keys)
        return dict(zip(every, _each(every, self.bundles.thaw.warmth), strict=True))


def notes_of(bundles: Bundles, store: ReadWrite) -> tuple[RestoreNote, ...]:
    """Returns all that was ever asked for, in its order."""
    folder = _folder(bundles)
    keys = [join(folder, name) for name in sorted(store.names(folder)) if name.endswith(".json")]
    return tuple(_note(key, store.get(key)) for key in keys)


def _note(key: str, data: bytes) -> RestoreNote:
    try:
        return RestoreNote(**json.loads(data))
    except (ValueError, TypeError) as problem:
        raise UnreadableMetadata(f"{key} is no note of a restore: {problem}", hint="bring it back") from problem


def _folder(bundles: Bundles) -> str:
    return join(bundles.index.folder, _RESTORES)


def _tally(needed: Mapping[str, Stored]) -> Tally:
    return Tally(len(needed), sum(each.size for each in needed.values()))


def _each(keys: list[str], ask: Callable[[str], Answer]) -> list[Answer]:
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(ask, keys))
