"""The verdict on each file: kept, victim, or spared and why."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from firnline.model.files import FileKind
from firnline.ports.engines import ELSEWHERE, NEAR_MISS, OUTSIDE, Territory

KEPT, VICTIM = "kept", "victim"
_VERDICTS = (KEPT, VICTIM, OUTSIDE, NEAR_MISS, ELSEWHERE)
_STEM = r"^[^:]+://[^/]*"


def verdicts(files: pa.Table, territory: Territory, elsewhere: pa.Table | None = None) -> pa.Table:
    """Returns the files with a column `verdict`, of numbers. A file is a victim only if every check lets it go.

    `elsewhere` are the files that other tables need.
    """
    needed = files.column("needed")
    verdict = pc.if_else(needed, _number(KEPT), _number(VICTIM))
    if elsewhere is not None:
        theirs = pc.is_in(_paths(files), value_set=_paths(elsewhere).combine_chunks())
        verdict = pc.if_else(pc.and_(pc.invert(needed), theirs), _number(ELSEWHERE), verdict)
    verdict = pc.if_else(pc.and_(pc.invert(needed), _outside(files, territory)), _number(OUTSIDE), verdict)
    verdict = pc.if_else(pc.and_(pc.invert(needed), _near_misses(files, needed)), _number(NEAR_MISS), verdict)
    return files.append_column("verdict", verdict)


def judged(
    files: pa.Table, verdict: str, columns: Sequence[str], kinds: Collection[FileKind] | None = None
) -> pa.Table:
    """Returns those columns of the files that got this verdict; of some kinds alone, where these are given."""
    wanted = pc.equal(files.column("verdict"), _number(verdict))
    if kinds is not None:
        names = pa.array([kind.value for kind in kinds], pa.string())
        wanted = pc.and_(wanted, pc.is_in(files.column("kind"), value_set=names))
    return files.select(list(columns)).filter(wanted)


def _number(verdict: str) -> pa.Scalar:
    return pa.scalar(_VERDICTS.index(verdict), pa.int8())


def _outside(files: pa.Table, territory: Territory) -> pa.ChunkedArray:
    names = files.column("identity")
    outside = pc.is_null(names)
    if territory.inside is not None:
        outside = pc.invert(_begin_with(names, territory.inside))
    return pc.or_(outside, _begin_with(names, territory.outside)) if territory.outside else outside


def _begin_with(names: pa.ChunkedArray, stems: Sequence[str]) -> pa.ChunkedArray:
    found = pc.is_null(names)
    for stem in stems:
        found = pc.or_(found, pc.starts_with(names, stem))
    return found


def _paths(files: pa.Table) -> pa.ChunkedArray:
    return pc.replace_substring_regex(files.column("identity"), _STEM, "")


def _near_misses(files: pa.Table, needed: pa.ChunkedArray) -> pa.ChunkedArray:
    """Tells which files have a needed file's path under another scheme or authority.

    `hdfs:///t/x` and `hdfs://nn/t/x` may well be one object, and no metadata says which: such a file stays.
    """
    if _one_stem(files.column("identity")):
        return pc.is_null(files.column("identity"))
    paths = _paths(files)
    return pc.is_in(paths, value_set=paths.filter(needed).combine_chunks())


def _one_stem(identities: pa.ChunkedArray) -> bool:
    """Tells whether all files share scheme and authority, as nearly all tables' do: then no two are a near miss."""
    if not len(identities):
        return True
    stem = "/".join(identities[0].as_py().split("/")[:3]) + "/"
    return bool(pc.all(pc.starts_with(identities, stem)).as_py())
