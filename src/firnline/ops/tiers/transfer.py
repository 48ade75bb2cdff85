"""Copying all that some snapshots are made of from one store to another: each file after all that it names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from firnline.errors import ArchiveIncomplete
from firnline.model.files import FileKind, Root, Tally
from firnline.model.snapshots import SnapshotId
from firnline.ops.table.context import TableContext
from firnline.ops.tiers.copied import CopiedFiles
from firnline.ops.tiers.rewriting import RewritingCopy
from firnline.ports.catalogs import Still
from firnline.ports.copying import Copy, CopyFate, CopyJob, CopyMany, CopyOutcome
from firnline.ports.engines import Engine, Survey, Territory
from firnline.ports.expanding import Expand
from firnline.ports.formats import State, TableFormat
from firnline.ports.progress import Progress
from firnline.ports.relocating import Place, Relocate
from firnline.ports.stores import Get, ReadWrite

if TYPE_CHECKING:
    import pyarrow as pa

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Transfer:
    """From where to where files go, and how: `copy` copies byte for byte, `relocate` rewrites what names others, `many`
    returns who spreads so many copies over the engine. `to` is what the other place is called.
    """

    source: Get
    target: ReadWrite
    place: Place
    copy: Copy
    relocate: Relocate
    many: Callable[[int], CopyMany]
    still: Still
    progress: Progress
    to: str

    def all_of(self, survey: Survey, files: CopiedFiles) -> None:
        """Copies every file that a walk reached, and notes it. Raises ArchiveIncomplete where one cannot be copied."""
        for kind in chain.from_iterable(self.relocate.order):
            self._of_kind(kind, survey, files)

    def _of_kind(self, kind: FileKind, survey: Survey, files: CopiedFiles) -> None:
        rewriting = RewritingCopy(self.source, self.target, self.relocate)
        copy = rewriting if kind in self.relocate.rewritten else self.copy
        every, done = survey.kept.by_kind.get(kind, Tally()).files, 0
        many, jobs = self.many(every), self._jobs(survey.kept_batches((kind,)))
        while some := list(islice(jobs, many.rows)):
            self.still()
            outcomes = many.copy_many(some, copy, self.still)
            refuse_failed(outcomes, self.to, "could not be copied")
            files.add(outcomes)
            done += len(some)
            self.progress.step(f"copying {kind.value} to {self.to}", done, max(done, every))

    def _jobs(self, batches: Iterable[pa.RecordBatch]) -> Iterator[CopyJob]:
        for batch in batches:
            columns: Any = (batch.column(name).to_pylist() for name in ("key", "size", "kind"))
            for key, size, kind in zip(*columns, strict=True):
                yield CopyJob(key, self.place.place(key), size, kind)


@contextmanager
def walked(
    work: TableContext,
    table_format: TableFormat,
    state: State,
    snapshots: Set[SnapshotId],
    expand: Expand | None = None,
) -> Iterator[tuple[Engine, Survey]]:
    """Hands out all that some snapshots of a table are made of, and the engine that walked it; units are opened by the
    format's own expand unless another is given.
    """
    engine = work.choose(state, table_format, "auto")
    starts = [Root(file, True, owner) for owner, file in table_format.roots(state) if owner in snapshots]
    with closing(engine.survey(starts, expand or table_format.expand, Territory(None))) as survey:
        yield engine, survey


def refuse_failed(outcomes: Iterable[CopyOutcome], to: str, what: str) -> None:
    """Raises ArchiveIncomplete where any copy failed."""
    failed = [each for each in outcomes if each.fate is CopyFate.FAILED]
    if failed:
        shown = "; ".join(each.error for each in failed[:_SHOWN])
        raise incomplete(to, f"{len(failed):,} files {what}: {shown}")


def incomplete(to: str, why: str) -> ArchiveIncomplete:
    return ArchiveIncomplete(
        f"{to} does not have all of it: {why}; no table was changed",
        hint="`firnline resume` tries a run again, and copies only what is missing",
    )
