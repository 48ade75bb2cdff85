"""The verdict on each file: kept, victim, or spared and why."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from firnline.model.files import FileKind, Tally, Totals
from firnline.ports.engines import ELSEWHERE, NEAR_MISS, OUTSIDE, SPARED_REASONS, Territory

KEPT, VICTIM = "kept", "victim"
VERDICTS = (KEPT, VICTIM, OUTSIDE, NEAR_MISS, ELSEWHERE)
"""A verdict travels as its place here."""
_STEM = r"^[^:]+://[^/]*"
_VIRTUAL = pa.scalar(FileKind.VIRTUAL.value)


class ByVerdict(ABC):
    """A survey by its totals: every engine has those of a verdict, and the rest of a Survey's figures follow."""

    __slots__ = ()

    @property
    def kept(self) -> Totals:
        return self._totals(KEPT)

    @property
    def victims(self) -> Totals:
        return self._totals(VICTIM)

    @property
    def spared(self) -> dict[str, Tally]:
        tallies = {reason: self._totals(reason).all for reason in SPARED_REASONS}
        return {reason: tally for reason, tally in tallies.items() if tally.files}

    @abstractmethod
    def _totals(self, verdict: str) -> Totals: ...


def verdicts(
    files: pa.Table,
    territory: Territory,
    elsewhere: pa.Table | None = None,
    virtual: pa.Scalar = _VIRTUAL,
) -> pa.Table:
    """Returns the files with a column `verdict`, of numbers. A file is a victim only if every check lets it go.

    `elsewhere` are the files that other tables need; `virtual` is the kind of what another table may own, as the column
    `kind` has it.
    """
    needed, names = files.column("needed"), files.column("identity")
    real = _real(names, territory)
    verdict = pc.if_else(needed, _number(KEPT), _number(VICTIM))
    if elsewhere is not None:
        theirs = _have_a_path_of(names, elsewhere.column("identity"))
        theirs = pc.or_(theirs, _have_a_path_of(real, _real(elsewhere.column("identity"), territory)))
        verdict = pc.if_else(pc.and_(pc.invert(needed), theirs), _number(ELSEWHERE), verdict)
    outside = pc.or_(_outside(names, territory.inside, territory.outside), _really_outside(real, territory))
    near = _near_misses(names, needed)
    if real is not names:
        near = pc.or_(near, _have_a_path_of(real, real.filter(needed)))
    outside = pc.or_(outside, pc.equal(files.column("kind"), virtual))
    verdict = pc.if_else(pc.and_(pc.invert(needed), outside), _number(OUTSIDE), verdict)
    verdict = pc.if_else(pc.and_(pc.invert(needed), near), _number(NEAR_MISS), verdict)
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
    return pa.scalar(VERDICTS.index(verdict), pa.int8())


def _real(names: pa.ChunkedArray, territory: Territory) -> pa.ChunkedArray:
    """Returns what the files are really called; the very same names where no link or mount has another for any."""
    chunks = names.chunks  # asked for again, they would be other objects
    found = [territory.real.column(chunk) for chunk in chunks]
    same = all(one is other for one, other in zip(found, chunks, strict=True))
    return names if same else pa.chunked_array(found, names.type)


def _really_outside(names: pa.ChunkedArray, territory: Territory) -> pa.ChunkedArray:
    """Tells which files lie outside the table's folders, or in another table's, although they are called otherwise; a
    file that has one name may lie in a folder that has two.
    """
    inside = None if territory.inside is None else tuple(map(territory.real, territory.inside))
    return _outside(names, inside, tuple(map(territory.real, territory.outside)))


def _outside(names: pa.ChunkedArray, inside: Sequence[str] | None, holes: Sequence[str]) -> pa.ChunkedArray:
    outside = pc.is_null(names) if inside is None else pc.invert(_begin_with(names, inside))
    return pc.or_(outside, _begin_with(names, holes)) if holes else outside


def _begin_with(names: pa.ChunkedArray, stems: Sequence[str]) -> pa.ChunkedArray:
    found = pc.is_null(names)
    for stem in stems:
        found = pc.or_(found, pc.starts_with(names, stem))
    return found


def _have_a_path_of(names: pa.ChunkedArray, others: pa.ChunkedArray) -> pa.ChunkedArray:
    """Tells which names have the path of one of the others, under whatever scheme and authority."""
    paths, theirs = (pc.replace_substring_regex(each, _STEM, "") for each in (names, others))
    return pc.is_in(paths, value_set=theirs.combine_chunks())


def _near_misses(names: pa.ChunkedArray, needed: pa.ChunkedArray) -> pa.ChunkedArray:
    """Tells which files have a needed file's path under another scheme or authority.

    `hdfs:///t/x` and `hdfs://nn/t/x` may well be one object, and no metadata says which: such a file stays.
    """
    return pc.is_null(names) if _one_stem(names) else _have_a_path_of(names, names.filter(needed))


def _one_stem(identities: pa.ChunkedArray) -> bool:
    """Tells whether all files share scheme and authority, as nearly all tables' do: then no two are a near miss."""
    if not len(identities):
        return True
    stem = "/".join(identities[0].as_py().split("/")[:3]) + "/"
    return bool(pc.all(pc.starts_with(identities, stem)).as_py())
