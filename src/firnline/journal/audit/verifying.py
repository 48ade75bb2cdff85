"""Reading the audit log, and proving that it is whole: numbers without holes, each entry after the one before it.

What the chain cannot show by itself: that entries are missing at its end, or, where there is no key, that its end was
written again by another hand. For that an end which was noted elsewhere is compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from firnline.errors import ObjectNotFound, UnreadableMetadata, UsageError
from firnline.journal.audit.appending import EMPTY, AuditStore, ChainEnd
from firnline.journal.audit.entries import AuditEntry, hash_of, key_of, number_in, parse_entry
from firnline.journal.events import RECORDS_KEY, Sealing

_AT_ONCE = 16
_HINT = "compare it with a copy; until that is settled, take nothing in the log after this entry for granted"


@dataclass(frozen=True, slots=True)
class Verified:
    """A log that is whole: where it ends, how many entries there are, and from which on they are sealed."""

    end: ChainEnd
    sealed_from: int | None

    def to_json(self) -> dict[str, Any]:
        number, head = self.end
        return {"entries": number, "end": f"{number}:{head}" if number else None, "sealed_from": self.sealed_from}


def numbered_keys(store: AuditStore, root: str) -> list[str]:
    """Returns the name of each entry, in order. Raises UnreadableMetadata at the first hole, and for any object that is
    none: a second one for a number is told as such.
    """
    found: dict[int, str] = {}
    strange: list[str] = []
    for each in store.list(root):
        number = number_in(each.key)
        if number is None:
            strange.append(each.key)
        else:
            found[number] = each.key
    if strange:
        raise UnreadableMetadata(f"{min(strange)} is not an entry of this log: it was put there, or doubled", _HINT)
    return [
        found.get(number) or _written_meanwhile(store, root, number) for number in range(1, max(found, default=0) + 1)
    ]


def _written_meanwhile(store: AuditStore, root: str, number: int) -> str:
    """Returns the name of an entry that was written while the others were listed. Raises UnreadableMetadata where there
    is none.
    """
    try:
        return store.head(key_of(root, number)).key
    except ObjectNotFound:
        raise UnreadableMetadata(f"entry {number} is missing in {root}", hint=_HINT) from None


def read_log(store: AuditStore, root: str) -> Iterator[tuple[str, bytes]]:
    """Yields each entry's name and bytes, in order; at most some hundred are held."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        keys = numbered_keys(store, root)
        for start in range(0, len(keys), _AT_ONCE * 8):
            some = keys[start : start + _AT_ONCE * 8]
            yield from zip(some, pool.map(store.get, some), strict=True)


def read_entries(store: AuditStore, root: str) -> Iterator[AuditEntry]:
    """Yields every entry in order. Raises UnreadableMetadata where one is damaged or missing; that each follows the one
    before is for `verify_log` to say.
    """
    for key, data in read_log(store, root):
        yield parse_entry(data, key)


def verify_log(store: AuditStore, root: str, sealing: Sealing, noted: ChainEnd | None = None) -> Verified:
    """Returns the log's last entry, and from which entry on the log is sealed. Raises UnreadableMetadata at the first
    entry that is broken, missing, swapped, doubled or without the seal that it must have, and if `noted`, an end of the
    log from before, is not in it any more.
    """
    end, sealed_from = EMPTY, None
    for number, (key, data) in enumerate(read_log(store, root), 1):
        entry = parse_entry(data, key)
        _refuse_misplaced(entry, number, end)
        sealed_from = _sealed_from(entry, sealing, sealed_from)
        end = ChainEnd(number, hash_of(data))
        _refuse_other(end, noted)
    if noted is not None and noted.number > end.number:
        raise UnreadableMetadata(f"the log ends with entry {end.number}, and had {noted.number}: it was cut", _HINT)
    if sealing.required and end.number and sealed_from is None:
        raise UnreadableMetadata(f"no entry in {root} is sealed with {RECORDS_KEY}", hint=_HINT)
    return Verified(end, sealed_from)


def _refuse_misplaced(entry: AuditEntry, number: int, end: ChainEnd) -> None:
    if entry.number != number:
        raise UnreadableMetadata(f"in the place of entry {number} is entry {entry.number}: they were swapped", _HINT)
    if entry.before != end.hash:
        raise UnreadableMetadata(
            f"entry {number} does not follow entry {end.number} as it is now: one of the two was changed", _HINT
        )


def _sealed_from(entry: AuditEntry, sealing: Sealing, sealed_from: int | None) -> int | None:
    """Returns the first entry that is sealed. Raises UnreadableMetadata for one after it that is not: only entries from
    before there was a key have no seal, and the first sealed one stands for all of them.
    """
    if not sealing.required:
        return sealed_from
    if entry.is_sealed_with(sealing):
        return sealed_from or entry.number
    if sealed_from is not None or entry.seal:
        raise UnreadableMetadata(f"entry {entry.number} is not sealed with {RECORDS_KEY}", hint=_HINT)
    return None


def _refuse_other(end: ChainEnd, noted: ChainEnd | None) -> None:
    if noted is not None and end.number == noted.number and end.hash != noted.hash:
        raise UnreadableMetadata(f"entry {end.number} is another one than was noted", hint=_HINT)


def parse_end(text: str) -> ChainEnd:
    """Returns the end that `firnline audit verify` showed as NUMBER:HASH. Raises UsageError for anything else."""
    number, _, head = text.partition(":")
    if not number.isdecimal() or len(head) != _HASH_LETTERS:
        raise UsageError(
            f"not an end of a log: {text!r}", hint="it is NUMBER:HASH, as `firnline audit verify` shows it"
        )
    return ChainEnd(int(number), head)


_HASH_LETTERS = 64
