"""A last look at copies whose sources are about to be deleted: size and place were proved for all that the tier's table
needs, and here the bytes are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import chain, islice

from firnline.journal.parts import part_keys, read_part
from firnline.journal.runs import Run
from firnline.model.files import FileKind
from firnline.ops.tiers.bundling import Bundles
from firnline.ops.tiers.handing import Handing
from firnline.ops.tiers.incomplete import refuse_failed
from firnline.ops.tiers.rewriting import RewritingCopy
from firnline.ops.tiers.tier import hands_over
from firnline.ops.tiers.transfer import until_stopped
from firnline.ports.catalogs import Still, always
from firnline.ports.copying import Copy, CopyFate, CopyJob, CopyMany, CopyOutcome, Stored
from firnline.ports.stores import Head, is_there, shared

_UNLIKE = "are not what is about to be deleted"


@dataclass(frozen=True, slots=True)
class ComparingCopy:
    """Compares what lies at both places, as a copy does that finds its target taken. Where either is gone there is
    nothing to compare: the tier was not handed that file, or an earlier purge has deleted the source.
    """

    copier: Copy
    source: Head
    target: Head

    def share(self, parts: int) -> ComparingCopy:
        return ComparingCopy(self.copier.share(parts), shared(self.source, parts), shared(self.target, parts))

    def copy(self, jobs: Sequence[CopyJob], still: Still = always) -> list[CopyOutcome]:
        return [self._compared(job, still) for job in jobs]

    def _compared(self, job: CopyJob, still: Still) -> CopyOutcome:
        skipped = CopyOutcome(job.target, CopyFate.PRESENT)
        if not is_there(self.target, job.target):
            return skipped
        (found,) = self.copier.copy((job,), still)
        was_there = found.fate is not CopyFate.FAILED or is_there(self.source, job.source)
        return found if was_there else skipped


def refuse_unlike(handing: Handing, run: Run) -> None:
    """Raises ArchiveIncomplete where a file on the written list lies in the tier with other bytes than its own."""
    work, tier = handing.work, handing.tier
    relocate = hands_over(work.source.format, str(tier.table)).relocation(handing.places, tier.store)
    rewriting = RewritingCopy(work.store, tier.store, relocate)
    plain = frozenset(chain.from_iterable(relocate.order)) - relocate.rewritten
    many = tier.many(run.plan["victims"]["files"])
    packed = relocate.leaves if tier.bundles is not None else frozenset[FileKind]()
    copiers: tuple[tuple[Copy, Set[FileKind]], ...] = (
        (tier.copy, plain - packed),
        (rewriting, relocate.rewritten - packed),
    )
    still = until_stopped(work, handing.still)
    for copier, kinds in copiers:
        comparing, jobs = ComparingCopy(copier, work.store, tier.store), _listed(handing, run, kinds)
        while some := list(islice(jobs, many.rows)):
            still()
            compared = many.copy_many(some, comparing, still)
            refuse_failed(compared, str(tier.table), _UNLIKE)
    if tier.bundles is not None:
        _refuse_unlike_packed(handing, tier.bundles, many, _listed(handing, run, packed), still)


def _refuse_unlike_packed(
    handing: Handing, bundles: Bundles, many: CopyMany, jobs: Iterator[CopyJob], still: Still
) -> None:
    """The bundle itself was seen to be whole: here its sources are read, and must be what was packed."""
    while some := list(islice(jobs, many.rows)):
        still()
        sources = [
            Stored(job.source, entry.file.size if job.size is None else job.size, entry.file.source_checksum)
            for job in some
            if (entry := bundles.index.entry(job.target)) is not None
        ]
        compared = many.verify_many(sources, bundles.sources)
        failed = [each for each in compared if each.fate is CopyFate.FAILED]
        there = (each for each in failed if is_there(handing.work.store, each.target))
        refuse_failed(there, str(handing.tier.table), _UNLIKE)


def _listed(handing: Handing, run: Run, kinds: Set[FileKind]) -> Iterator[CopyJob]:
    """Yields what would be a copy of each file of some kinds on the written list."""
    store = handing.work.store
    for key in part_keys(store, run.folder.victims):
        part = read_part(store, key, run.victim_seals[key.rpartition("/")[2]])
        for row in part.select(["key", "size", "kind"]).to_pylist():
            if FileKind(row["kind"]) in kinds:
                yield CopyJob(row["key"], handing.places.place(row["key"]), row["size"], row["kind"])
