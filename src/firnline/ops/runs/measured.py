"""The sizes of victims of which no metadata tells one: indexes beside data files, statistics.

Asked for one by one, and only of what goes: a plan says how many bytes come back, and its list the size of each file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from firnline.errors import ObjectNotFound
from firnline.model.files import FileKind, Tally, Totals
from firnline.ports.engines import Survey
from firnline.ports.stores import Head

if TYPE_CHECKING:
    import pyarrow as pa

_THREADS = 16


@dataclass(frozen=True, slots=True)
class Measured:
    """A survey with the sizes that were asked for, by path. What is gone already still has none."""

    survey: Survey
    sizes: Mapping[str, int]
    victims: Totals

    @property
    def kept(self) -> Totals:
        return self.survey.kept

    @property
    def spared(self) -> dict[str, Tally]:
        return self.survey.spared

    @property
    def units_opened(self) -> int:
        return self.survey.units_opened

    @property
    def unsized(self) -> int:
        return self.survey.unsized - len(self.sizes)

    def victim_batches(self) -> Iterator[pa.RecordBatch]:
        return (self._filled(batch) for batch in self.survey.victim_batches())

    def kept_batches(self, kinds: Collection[FileKind] = tuple(FileKind)) -> Iterator[pa.RecordBatch]:
        return self.survey.kept_batches(kinds)

    def close(self) -> None:
        self.survey.close()

    def _filled(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        import pyarrow as pa

        said = batch.column("size")
        if not said.null_count:
            return batch
        rows = zip(batch.column("key").to_pylist(), said.to_pylist(), strict=True)
        sizes = pa.array([self.sizes.get(key) if size is None else size for key, size in rows], pa.int64())
        return batch.set_column(batch.schema.get_field_index("size"), "size", sizes)


def measured(store: Head, survey: Survey) -> Survey:
    """Returns the survey, in which every victim that is there has a size. Nothing is asked where all have one."""
    if not survey.unsized:
        return survey
    sizes: dict[str, int] = {}
    told: Counter[FileKind] = Counter()
    with ThreadPoolExecutor(_THREADS) as pool:
        for key, kind, size in (each for batch in survey.victim_batches() for each in _asked(store, batch, pool)):
            sizes[key] = size
            told[kind] += size
    found = ((kind, Tally(0, size)) for kind, size in told.items())
    return Measured(survey, sizes, Totals.of([*survey.victims.by_kind.items(), *found]))


def _asked(store: Head, batch: pa.RecordBatch, pool: ThreadPoolExecutor) -> Iterator[tuple[str, FileKind, int]]:
    unsized = batch.filter(batch.column("size").is_null())
    keys = unsized.column("key").to_pylist()
    answers = zip(
        keys, unsized.column("kind").to_pylist(), pool.map(lambda key: size_of(store, key), keys), strict=True
    )
    return ((key, FileKind(kind), size) for key, kind, size in answers if size is not None)


def size_of(store: Head, key: str) -> int | None:
    """Returns the size of an object as its store tells it; None if it is gone."""
    try:
        return store.head(key).size
    except ObjectNotFound:
        return None
