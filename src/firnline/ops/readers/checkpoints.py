"""A checkpoint of Spark Structured Streaming: where each source of its query goes on from.

`offsets/N` is written before batch N is run and `commits/N` after it. A query that starts again runs a batch without
its commit once more, from the offsets of the batch before. So the last batch that has both is where it stands; one that
has none stands at `sources/I/offsets/0`, which Iceberg's source writes as it starts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from firnline.errors import ObjectNotFound, StoreError, UnreadableMetadata
from firnline.model.locations import join
from firnline.model.readers import StreamOffset, StreamReader
from firnline.ports.abilities import ReadByStreams
from firnline.ports.stores import Checkpoints

OFFSETS, COMMITS, SOURCES = "offsets", "commits", "sources"
WAY_OUT = "nothing was removed; take it out of `readers` in firnline.yaml, if its stream is gone for good"
_VERSION, _NONE = "v1", "-"
_BATCH = re.compile("[0-9]{1,18}")
_HEAD_LINES = 2
_TRIES = 3


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One checkpoint, read by what a format knows of its own offsets."""

    store: Checkpoints
    location: str
    format: ReadByStreams

    def readers(self) -> tuple[StreamReader, ...]:
        """Returns the sources that read tables of the format. Raises UnreadableMetadata where any part of it cannot be
        read or is not understood: what its stream needs would be a guess.

        A running query removes old batches and writes new ones meanwhile, so one that is gone is looked for again.
        """
        for _ in range(_TRIES):
            try:
                return tuple(self._readers())
            except ObjectNotFound as problem:
                gone = problem
            except StoreError as problem:
                raise UnreadableMetadata(
                    f"the checkpoint {self.location} cannot be read: {problem.message}", hint=problem.flags or WAY_OUT
                ) from None
        raise self._strange(gone.message)

    def _readers(self) -> list[StreamReader]:
        # Offsets first: a batch that ends in between has a commit, and then counts as one that is run again.
        offsets = self._batches(OFFSETS)
        commits = self._batches(COMMITS)
        batch = last_done(offsets, commits)
        if batch is None and max(offsets, default=0) > 0:
            raise self._strange(f"batch {max(offsets)} has no commit, and the one before it no offsets")
        began, lines = self._began(), [] if batch is None else self._lines(batch)
        if batch is not None and len(lines) <= max(began, default=-1):
            raise self._strange(f"offsets/{batch} has {len(lines)} offsets, and source {max(began)} has none")
        moved_ms = self._moved_ms(offsets, commits, began)
        stands = {index: self._parsed(text, f"{OFFSETS}/{batch}") for index, text in enumerate(lines) if text != _NONE}
        return [
            StreamReader(self.location, index, offset.snapshot, _snapshot(began.get(index)), moved_ms)
            for index, offset in sorted({**began, **stands}.items())
            if offset is not None
        ]

    def _batches(self, folder: str) -> set[int]:
        """Returns the batches of a log. Spark's own temporary files and checksums have other names."""
        names = self.store.names(join(self.location, folder))
        return {int(name) for name in names if _BATCH.fullmatch(name)}

    def _began(self) -> dict[int, StreamOffset]:
        """Returns the first offset of each source, by the source's number. Those of other systems, which keep something
        else there, or nothing, are left out.
        """
        found: dict[int, StreamOffset] = {}
        for name in self.store.folders(join(self.location, SOURCES)):
            if _BATCH.fullmatch(name) and "0" in self.store.names(join(self.location, SOURCES, name, OFFSETS)):
                where = f"{SOURCES}/{name}/{OFFSETS}/0"
                offset = self._parsed(self._text(where), where)
                if offset is not None:
                    found[int(name)] = offset
        return found

    def _lines(self, batch: int) -> Sequence[str]:
        """Returns what the sources wrote, one line for each. Raises UnreadableMetadata for a log of another version."""
        lines = self._text(f"{OFFSETS}/{batch}").splitlines()
        if not lines or lines[0] != _VERSION:
            said = lines[0][:20] if lines else ""
            raise self._strange(f"{OFFSETS}/{batch} begins with {said!r}, not {_VERSION!r}")
        if len(lines) <= _HEAD_LINES:
            raise self._strange(f"{OFFSETS}/{batch} is cut off")
        return lines[_HEAD_LINES:]

    def _text(self, name: str) -> str:
        try:
            return self.store.get(join(self.location, name)).decode()
        except UnicodeDecodeError:
            raise self._strange(f"{name} is no text") from None

    def _parsed(self, text: str, name: str) -> StreamOffset | None:
        try:
            return self.format.offset_in(text)
        except ValueError as problem:
            raise self._strange(f"{name} holds what is no offset: {problem}") from None

    def _moved_ms(self, offsets: set[int], commits: set[int], began: dict[int, StreamOffset]) -> int | None:
        """Returns when the checkpoint was last written; None where the store does not tell of every last file."""
        names = [f"{folder}/{max(log)}" for folder, log in ((OFFSETS, offsets), (COMMITS, commits)) if log]
        names += [f"{SOURCES}/{index}/{OFFSETS}/0" for index in began]
        times = [self.store.head(join(self.location, name)).modified_ms for name in names]
        known = [each for each in times if each is not None]
        return max(known) if known and len(known) == len(times) else None

    def _strange(self, why: str) -> UnreadableMetadata:
        return UnreadableMetadata(f"the checkpoint {self.location} is not understood: {why}", hint=WAY_OUT)


def last_done(offsets: set[int], commits: set[int]) -> int | None:
    """Returns the batch whose offsets a query goes on from; None where it begins at its start, or nobody can tell.

    The earlier one wherever there is a doubt: the last batch counts only with its own commit as the last, and a batch
    before that only with its offsets still there.
    """
    if not offsets:
        return None
    last = max(offsets)
    if last in commits and last == max(commits):
        return last
    done = {each for each in commits if each < last}
    before = min(last - 1, max(done, default=last - 1))
    return before if before in offsets else None


def _snapshot(offset: StreamOffset | None) -> str | None:
    return None if offset is None else offset.snapshot
