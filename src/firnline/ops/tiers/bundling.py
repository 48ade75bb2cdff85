"""Files of a tier whose objects have to be few and large: leaf files go into bundles, each once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from uuid import uuid4

from firnline.errors import ArchiveIncomplete
from firnline.model.files import FileKind, Tally
from firnline.model.locations import join
from firnline.ops.tiers.copied import CopiedFiles
from firnline.ops.tiers.incomplete import first_of, incomplete
from firnline.ports.catalogs import Still
from firnline.ports.copying import CopyJob, CopyOutcome, Stored, Verify
from firnline.ports.engines import Survey
from firnline.ports.packing import BundleJob, BundleOutcome, Pack, PackMany, Repack
from firnline.ports.relocating import Relocate
from firnline.ports.stores import Head, is_there
from firnline.ports.thawing import Thaw
from firnline.tiers.bundles.index import BUNDLE, PackedIndex

_MOST_MEMBERS = 4_000
_AT_ONCE = 16


Look = Callable[[list[Stored]], list[CopyOutcome]]
"""Returns those that are not any more what they were seen to be."""


@dataclass(frozen=True, slots=True)
class Bundles:
    """The bundles of one table's history in a tier. `pack` writes them, of `limit` bytes each, `repack` does so of what
    lies in others; `thaw` makes them readable; `sources` looks again at what was packed; `plain` knows what lies in the
    tier by itself.
    """

    root: str
    limit: int
    plain: Head
    index: PackedIndex
    pack: Pack
    repack: Repack
    thaw: Thaw
    sources: Verify

    def add(
        self,
        kind: FileKind,
        jobs: Iterable[CopyJob],
        many: PackMany,
        relocate: Relocate,
        files: CopiedFiles,
        still: Still,
    ) -> Iterator[int]:
        """Packs files of one kind, and yields how many at a time. Raises ArchiveIncomplete where one cannot be."""
        missing = self._missing(kind, jobs, relocate, files)
        groups = self._groups(missing)
        while some := list(islice(groups, _AT_ONCE)):
            still()
            outcomes = many.pack_many(some, self.pack, relocate, still)
            _refuse_failed(outcomes)
            still()
            self.index.add(outcomes)
            for each in outcomes:
                files.add_bundle(each)
            yield sum(len(each.packed) for each in outcomes)

    def _missing(
        self, kind: FileKind, jobs: Iterable[CopyJob], relocate: Relocate, files: CopiedFiles
    ) -> Iterator[CopyJob]:
        """Yields what is in no bundle yet. Raises ArchiveIncomplete where another file has that place: of a kind that
        is not rewritten the size says so here, and before a purge its bytes do.
        """
        for job in jobs:
            entry = self.index.entry(job.target)
            if entry is None:
                yield job
                continue
            if kind not in relocate.rewritten and job.size not in (None, entry.file.size):
                raise incomplete(job.target, f"another file of {entry.file.size:,} bytes is packed under that name")
            files.present += Tally(1, entry.file.size)

    def _groups(self, jobs: Iterable[CopyJob]) -> Iterator[BundleJob]:
        members: list[CopyJob] = []
        size = 0
        for job in jobs:
            if members and (size + (job.size or 0) > self.limit or len(members) >= _MOST_MEMBERS):
                yield self._job(members)
                members, size = [], 0
            members.append(job)
            size += job.size or 0
        if members:
            yield self._job(members)

    def _job(self, members: list[CopyJob]) -> BundleJob:
        return BundleJob(self.new_name(), self.root, tuple(members))

    def new_name(self) -> str:
        """Returns the key of a bundle that no other ever had."""
        return join(self.index.folder, f"{uuid4().hex}{BUNDLE}")

    def of(self, survey: Survey, leaves: frozenset[FileKind]) -> dict[str, Stored]:
        """Returns the bundles in which files of a walk lie, by their names. A file that is in none lies by itself: the
        tier had no bundles when it came. Raises ArchiveIncomplete where it does not.
        """
        found: dict[str, Stored] = {}
        for batch in survey.kept_batches(tuple(leaves)):
            for place in batch.column("key").to_pylist():
                if (entry := self.index.entry(place)) is not None:
                    found[entry.bundle.target] = entry.bundle
                elif not is_there(self.plain, place):
                    raise incomplete(place, "it is in no bundle")
        return found

    def refuse_damaged(self, survey: Survey, leaves: frozenset[FileKind], look: Look) -> None:
        """Raises ArchiveIncomplete unless every file of a walk lies in a bundle that is whole. Those that are not are
        left out from then on: a file may lie in two, and what lies in no other can be packed again.
        """
        seen, damaged = set[str](), list[str]()
        while due := {key: each for key, each in self._held(survey, leaves, damaged).items() if key not in seen}:
            failed = look(list(due.values()))
            self.index.forget(each.target for each in failed)
            damaged += [each.error for each in failed]
            seen |= due.keys()

    def _held(self, survey: Survey, leaves: frozenset[FileKind], damaged: list[str]) -> dict[str, Stored]:
        try:
            return self.of(survey, leaves)
        except ArchiveIncomplete as problem:
            if not damaged:
                raise
            raise incomplete("the tier", f"{len(damaged):,} bundles are damaged: {first_of(damaged)}") from problem

    def rather_whole(self, survey: Survey, leaves: frozenset[FileKind], look: Look) -> dict[str, Stored]:
        """Returns the bundles in which files of a walk lie: where a file lies in two, the one that is whole. What
        cannot be looked at may be whole, too: so nothing is refused here, and who reads it sees.
        """
        held = self.of(survey, leaves)
        self.index.forget(each.target for each in look(list(held.values())))
        try:
            return self.of(survey, leaves)
        except ArchiveIncomplete:
            self.index.recall()
            return held


def _refuse_failed(outcomes: Iterable[BundleOutcome]) -> None:
    failed = [each.error for each in outcomes if each.error]
    if failed:
        raise incomplete("the tier", f"{len(failed):,} bundles could not be written: {first_of(failed)}")
