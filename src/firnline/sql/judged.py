"""Files of a walk on Spark in words: path, kind, size, verdict and reason. Runs on executors: it imports little."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from firnline.ports.engines import SPARED_REASONS
from firnline.spark.settling import OTHERS, UNREADABLE
from firnline.spark.telling import error_of, forget_zip_importers
from firnline.spark.travelling import KINDS
from firnline.sql.faults import telling
from firnline.walking.verdicts import KEPT, VERDICTS, VICTIM

REASONS = {KEPT: "is needed by what stays", VICTIM: "is needed only by what expires", **SPARED_REASONS}
FILES_DDL = "path string, kind string, size bigint, verdict string, reason string"
_NAMES = pa.array(VERDICTS, pa.string())
_REASONS = pa.array([REASONS[each] for each in VERDICTS], pa.string())


def named_files(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yields the judged files in words. Raises where a unit could not be read.

    A function, and no expression: Spark would move a user's filter before the look at errors, or leave out the column
    that raises.
    """
    forget_zip_importers()
    with telling():
        for batch in batches:
            yield _in_words(batch)


def _in_words(batch: pa.RecordBatch) -> pa.RecordBatch:
    verdicts = batch.column("verdict")
    for said in batch.filter(pc.equal(verdicts, UNREADABLE)).column("error").to_pylist():
        raise error_of(said)
    files = batch.filter(pc.not_equal(verdicts, OTHERS))
    verdict = files.column("verdict").cast(pa.int32())
    columns = {
        "path": pc.coalesce(files.column("key"), files.column("identity")),
        "kind": KINDS.take(files.column("kind").cast(pa.int32())),
        "size": files.column("size"),
        "verdict": _NAMES.take(verdict),
        "reason": _REASONS.take(verdict),
    }
    return pa.record_batch(columns)
