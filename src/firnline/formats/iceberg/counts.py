"""Whether a manifest list holds all that its snapshot has; and about how many files a walk of a table meets.

Nothing says how long a list is, and one that was cut between two blocks still decodes, without its last manifests.
What tells is how many manifests the writer says it kept and made; Iceberg's Java notes both. The totals of files are
worth less: every writer adds to the total before it, Java leaves files out that it deletes twice, and one mistake goes
on through all snapshots after it. So they count only where no writer noted the manifests.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from firnline.formats.avro import read_header
from firnline.formats.iceberg.document import Document
from firnline.formats.opening import Doubt
from firnline.model.files import Tally

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]
_MANY = np.iinfo(np.int64).max
_COUNT = re.compile(r"[0-9]{1,18}")
_ID = re.compile(r"-?[0-9]{1,19}")
_MANIFESTS = ("manifests-created", "manifests-kept")


def claim_of(summary: Any) -> int | None:
    """Returns what a summary says of its list as one number, for engines carry one with each unit: so many data files,
    or, below zero, one less than minus the number of manifests. None where it says nothing.
    """
    if not isinstance(summary, dict):
        return None
    manifests = [_whole(summary, name) for name in _MANIFESTS]
    if None not in manifests:
        return -1 - sum(each or 0 for each in manifests)
    return _whole(summary, "total-data-files")


def refuse_cut(entries: pa.RecordBatch, of: Numbers, claims: Sequence[int | None], contents: Sequence[bytes]) -> None:
    """Raises Doubt where a list holds less than its snapshot claims. `of` is the number of each entry's list."""
    manifests = np.bincount(of, minlength=len(claims)).tolist()
    files = _data_files(entries, of, len(claims))
    for number, claim in enumerate(claims):
        if claim is not None and claim < 0 and manifests[number] < -1 - claim:
            raise _doubt(contents[number], f"{manifests[number]} manifests", f"{-1 - claim}")
        if claim is not None and files[number] < claim:
            raise _doubt(contents[number], f"{files[number]} data files", f"{claim}")


def _data_files(entries: pa.RecordBatch, of: Numbers, lists: int) -> list[int]:
    """Returns of how many data files the manifests of each list tell; of very many where one leaves its counts out, as
    writers of version 1 may.
    """
    is_data = pc.equal(pc.fill_null(entries.column("content"), 0), 0).to_numpy(zero_copy_only=False)
    counts = pc.add(count_of(entries, "added"), count_of(entries, "existing"))
    untold = counts.is_null().to_numpy(zero_copy_only=False)
    found = np.zeros(lists, dtype=np.int64)
    np.add.at(found, of[is_data], pc.fill_null(counts, 0).to_numpy()[is_data])
    found[of[is_data & untold]] = _MANY
    return found.tolist()


def _doubt(data: bytes, told: str, claimed: str) -> Doubt:
    said = read_header(data).metadata.get("snapshot-id", b"").decode("ascii", "replace")
    named = said if _ID.fullmatch(said) else "ID"
    return Doubt(
        f"it tells of {told}, its snapshot of {claimed}: it was cut short, or the summary is wrong"
        f" (if so, --trust-snapshot {named} goes by the list)"
    )


def count_of(data: pa.RecordBatch, which: str) -> pa.Array:
    """Returns a column of counts; some writers use its older name."""
    return pc.coalesce(data.column(f"{which}_files_count"), data.column(f"{which}_data_files_count"))


def _whole(summary: Mapping[str, Any], name: str) -> int | None:
    said = summary.get(name)
    return int(said) if isinstance(said, str) and _COUNT.fullmatch(said) else None


def live_size(document: Document, current: str | None) -> Tally | None:
    """Returns the files of the present snapshot by its summary, which may leave any of it out; none without a snapshot.
    Manifests are not counted.
    """
    if current is None:
        return Tally()
    snapshots = (each for each in document.get("snapshots") or () if isinstance(each, dict))
    summary = next((each.get("summary") for each in snapshots if str(each.get("snapshot-id")) == current), None)
    if not isinstance(summary, dict):
        return None
    files, size = _whole(summary, "total-data-files"), _whole(summary, "total-files-size")
    deletes = _whole(summary, "total-delete-files") if "total-delete-files" in summary else 0
    return None if files is None or size is None or deletes is None else Tally(files + deletes, size)


_NUMBER = re.compile(r"[0-9]{1,12}")
"""No table has a trillion files: what says so, or less than none, says nothing."""


def files_told(document: Document) -> int:
    """Returns how many files the summaries tell of; 0 where none does.

    That is the most that any snapshot has, or all that were ever added if these are more: a table of ten files that
    are written anew every minute has many files in its history, and a walk meets each of them.
    """
    summaries = list(_summaries(document))
    most = max((_told(each, "total") for each in summaries), default=0)
    return max(most, sum(_told(each, "added") for each in summaries))


def _summaries(document: Document) -> Iterator[dict[str, Any]]:
    snapshots = document.get("snapshots") or ()
    summaries = (each.get("summary") for each in snapshots if isinstance(each, dict))
    return (each for each in summaries if isinstance(each, dict))


def _told(summary: dict[str, Any], which: str) -> int:
    texts = (str(summary.get(f"{which}-{kind}-files")) for kind in ("data", "delete"))
    return sum(int(text) for text in texts if _NUMBER.fullmatch(text))
