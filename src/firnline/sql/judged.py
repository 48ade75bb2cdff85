"""Files of a walk on Spark in words: path, kind, size, verdict and reason. Runs on executors: it imports little."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import pyarrow as pa

from firnline.ports.engines import SPARED_REASONS
from firnline.spark.executors.beginning import begin_task
from firnline.spark.judged import OTHERS, each_kind
from firnline.sql.faults import telling
from firnline.walking.verdicts import KEPT, VERDICTS, VICTIM

REASONS = {KEPT: "is needed by what stays", VICTIM: "is needed only by what expires", **SPARED_REASONS}
FILES_DDL = "path string, kind string, size bigint, verdict string, reason string"


def named_files(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yields the judged files in words. Raises where a unit could not be read.

    A function, and no expression: Spark would move a user's filter before the look at errors, or leave out the column
    that raises.
    """
    begin_task()
    with telling():
        for one in chain.from_iterable(map(each_kind, batches)):
            for files in one.batches():
                if one.verdict != OTHERS:
                    yield _in_words(files, VERDICTS[one.verdict])


def _in_words(files: pa.RecordBatch, verdict: str) -> pa.RecordBatch:
    said = {"path": files.column("key"), **{name: files.column(name) for name in ("kind", "size")}}
    words = {"verdict": verdict, "reason": REASONS[verdict]}
    return pa.record_batch({**said, **{name: pa.repeat(pa.scalar(word), len(files)) for name, word in words.items()}})
