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
from firnline.ops.tiers.handing import Handing
from firnline.ops.tiers.rewriting import RewritingCopy
from firnline.ops.tiers.tier import hands_over
from firnline.ops.tiers.transfer import refuse_failed
from firnline.ports.catalogs import Still, always
from firnline.ports.copying import Copy, CopyFate, CopyJob, CopyOutcome
from firnline.ports.stores import Head, is_there, shared


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
    copiers: tuple[tuple[Copy, Set[FileKind]], ...] = ((tier.copy, plain), (rewriting, relocate.rewritten))
    for copier, kinds in copiers:
        comparing, jobs = ComparingCopy(copier, work.store, tier.store), _listed(handing, run, kinds)
        while some := list(islice(jobs, many.rows)):
            handing.still()
            compared = many.copy_many(some, comparing, handing.still)
            refuse_failed(compared, str(tier.table), "are not what is about to be deleted")


def _listed(handing: Handing, run: Run, kinds: Set[FileKind]) -> Iterator[CopyJob]:
    """Yields what would be a copy of each file of some kinds on the written list."""
    store = handing.work.store
    for key in part_keys(store, run.folder.victims):
        part = read_part(store, key, run.victim_seals[key.rpartition("/")[2]])
        for row in part.select(["key", "size", "kind"]).to_pylist():
            if FileKind(row["kind"]) in kinds:
                yield CopyJob(row["key"], handing.places.place(row["key"]), row["size"], row["kind"])
