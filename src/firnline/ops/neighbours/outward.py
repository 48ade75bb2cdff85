"""References out of a table's own folders: which of its units lead to files that lie elsewhere.

An imported file, a clone and a table that was moved all need files in another table's folders. They are found by
opening every unit of a table once; a unit never changes, so what it leads to is remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import TYPE_CHECKING

from firnline.model.files import File
from firnline.model.locations import bare_path, identity, parse_location
from firnline.ops.neighbours.folders import OwnFolders
from firnline.ports.expanding import EXPECTS, Expand, Expanded, dependences, opener, unit_of, with_expectations
from firnline.ports.stores import RealNames

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

StampsOf = Callable[[Sequence[str]], list[bytes | None]]
"""Returns what identifies the bytes of each object now; None for one that nothing identifies."""

_LOCAL = "file:///"
_THREADS = 8
_MOST_FOLDERS = 32
_UNSAID = -(1 << 62)
"""Less than whatever a format expects of a unit, in its own code."""
DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True)
class Bridge:
    """A file that leads out of its table's own folders: itself, or by what it names. `folders` is where to: each local
    one by itself, since links are looked for in it at every look.
    """

    file: File
    folders: tuple[str, ...]

    def leads_into(self, stems: Sequence[str]) -> bool:
        """Tells whether anything that it leads to may lie in one of these folders, which are real as its own are: by
        their paths alone, as engines and purges compare what others need.
        """
        theirs = tuple(map(bare_path, stems))
        mine = map(bare_path, self.folders)
        return any(folder.startswith(theirs) or any(stem.startswith(folder) for stem in theirs) for folder in mine)


Bridges = tuple[Bridge, ...]


@dataclass
class Walked:
    """The units that were opened, by their digests, and what those of them that are or have bridges lead to."""

    units: set[bytes] = field(default_factory=set)
    leads: dict[bytes, Bridges] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UnitMeans:
    """How units are opened, what identifies their bytes, and where files really are."""

    expand: Expand
    stamps_of: StampsOf
    real: RealNames


@dataclass
class _Unit:
    """A unit of this walk. `digest` is None where nothing identifies its bytes: it is opened every time. So is one that
    names a file by a link: links change; and one that was not there, for a moment or for ever.
    """

    file: File
    digest: bytes | None
    folders: set[str] = field(default_factory=set)
    below: list[str] = field(default_factory=list)
    is_linked: bool = False
    is_there: bool = False


def outward(files: Iterable[File], means: UnitMeans, own: OwnFolders, walked: Walked) -> tuple[Bridges, bool]:
    """Returns what leads from these files out of the table's own folders, and whether links are among them: then it is
    true now and need not be later. Notes in `walked` what was opened.

    Raises UnreadableMetadata where a unit cannot be read: it may name any file of any table.
    """
    roots = list(files)
    walk = _Walk(means, own, walked)
    walk.open_all([file for file in roots if file.opens])
    leads = walk.finished()
    found: dict[str, Bridge] = {}
    met_links = walk.met_links
    for file in roots:
        name = identity(file.key)
        real = means.real(name)
        met_links |= real != name
        if file.opens:
            found |= {identity(each.file.key): each for each in leads(name)}
        elif not own.has(real):
            found[name] = Bridge(file, (_folder(real),))
    return tuple(found.values()), met_links


class _Walk:
    """One walk over the units of a table; those that `walked` knows are not opened."""

    def __init__(self, means: UnitMeans, own: OwnFolders, walked: Walked) -> None:
        self._means = means
        self._own = own
        self._walked = walked
        self._units: dict[str, _Unit] = {}
        self._opened: list[str] = []

    def open_all(self, units: Sequence[File]) -> None:
        self._meet(units)
        with opener([self._means.expand], _THREADS) as opened:
            for kind in self._means.expand.order:
                due = [each for each in self._units.values() if each.file.kind is kind and self._is_due(each)]
                for numbers, answer in opened(each.file for each in due):
                    self._take(due, answer)
                    self._opened += (identity(due[number].file.key) for number in numbers)

    def finished(self) -> Callable[[str], Bridges]:
        """Returns what tells where a unit leads to, after all of them were opened: what is deepest comes last."""
        leads: dict[str, Bridges] = {}
        for name in reversed(self._opened):
            unit = self._units[name]
            leads[name] = self._lead(unit, [self._known(leads, each) for each in unit.below])
        linked = self._linked()
        for name in self._opened:
            if name not in linked:
                self._note(self._units[name], leads[name])
        return lambda name: self._known(leads, name)

    def _known(self, leads: dict[str, Bridges], name: str) -> Bridges:
        digest = self._units[name].digest
        return leads[name] if name in leads else self._walked.leads.get(digest or b"", ())

    def _lead(self, unit: _Unit, below: Sequence[Bridges]) -> Bridges:
        """Returns the bridges to be counted for a unit: itself with all below it if it leads out, else those below."""
        found = {identity(each.file.key): each for bridges in below for each in bridges}
        name = self._means.real(identity(unit.file.key))
        out = unit.folders if self._own.has(name) else unit.folders | {_folder(name)}
        if not out:
            return tuple(found.values())
        return (Bridge(unit.file, gathered(out | {folder for each in found.values() for folder in each.folders})),)

    def _note(self, unit: _Unit, bridges: Bridges) -> None:
        if unit.digest is not None and unit.is_there:
            self._walked.units.add(unit.digest)
            if bridges:
                self._walked.leads[unit.digest] = bridges

    @property
    def met_links(self) -> bool:
        return any(unit.is_linked for unit in self._units.values())

    def _linked(self) -> set[str]:
        """Returns the units that name anything by a link, or have one below them that was opened and does."""
        linked = {name for name, unit in self._units.items() if unit.is_linked}
        for name in reversed(self._opened if linked else ()):
            if not linked.isdisjoint(self._units[name].below):
                linked.add(name)
        return linked

    def _is_due(self, unit: _Unit) -> bool:
        return unit.digest is None or unit.digest not in self._walked.units

    def _meet(self, units: Sequence[File]) -> None:
        new = self._unmet(units)
        stamps = self._means.stamps_of([each.key for each in new.values()])
        expand = self._means.expand
        # What is noted of a unit stands for all below it, down to the last kind: so it depends on all that they do.
        beside = dependences(expand, [replace(each, kind=expand.order[-1]) for each in new.values()])
        for (name, file), stamp, told in zip(new.items(), stamps, beside, strict=True):
            self._units[name] = _Unit(file, _digest(name, file, stamp, told))

    def _unmet(self, units: Sequence[File]) -> dict[str, File]:
        """Returns what is to be met, by identity: new units, and those of which more is expected than was known. A unit
        is held against the most that is said of it; so is that of a walk which judges.
        """
        due: dict[str, File] = {}
        for file in units:
            name = identity(file.key)
            met = self._units.get(name)
            known = due.get(name) or (None if met is None else met.file)
            if known is None or (not (met and met.is_there) and _says_more(file, known)):
                due[name] = file
        return due

    def _take(self, due: Sequence[_Unit], answer: Expanded) -> None:
        """Notes what units name: deeper units, and the folders of all that lies outside."""
        names = [identity(each.file.key) for each in due]
        for number in set(answer.of.tolist()):
            due[number].is_there = True
        deeper, namings = _units_named(answer)
        for number, name in namings:
            if name != names[number]:
                due[number].below.append(name)
        called = answer.rows.column("identity")
        real = self._means.real.column(called)
        for name, number in _named(answer, _outside(real, self._own)):
            if name != names[number]:
                due[number].folders.add(_folder(self._means.real(name)))
        if real is not called:
            for number in set(answer.of[_differ(real, called)].tolist()):
                due[number].is_linked = True
        self._meet(deeper)


def gathered(folders: set[str]) -> tuple[str, ...]:
    """Returns a bounded number of folders that these lie in: partitions of one table are one place.

    The deepest go first. What is at the top already stays as it is: above a bucket there is no folder that its own
    begin with. Local folders all stay: what lies in one may become a link, and no folder above it tells of that.
    """
    local = {each for each in folders if each.startswith(_LOCAL)}
    folders = folders - local
    while len(folders) > _MOST_FOLDERS and (deepest := max(map(_depth, folders))):
        folders = {_folder(each.rstrip("/")) if _depth(each) == deepest else each for each in folders}
    return tuple(sorted(folders | local))


def _depth(folder: str) -> int:
    return parse_location(folder).path.rstrip("/").count("/")


def _folder(name: str) -> str:
    return name.rpartition("/")[0] + "/"


def _says_more(file: File, known: File) -> bool:
    return file.expects is not None and (known.expects is None or file.expects > known.expects)


def _digest(name: str, file: File, stamp: bytes | None, beside: str | None) -> bytes | None:
    """Returns what a unit is known by: its bytes, its name, what its table expects below it, and what it depends on."""
    if stamp is None or beside is None:
        return None
    said = f"{name}\0{file.expects}\0{beside}"
    return blake2b(stamp + said.encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES).digest()


def _named(answer: Expanded, wanted: pa.Array) -> Iterator[tuple[str, int]]:
    """Yields what the wanted rows name, each with the number of its unit."""
    chosen = wanted.to_numpy(zero_copy_only=False)
    names = answer.rows.column("identity").filter(wanted)
    return zip(names.to_pylist(), answer.of[chosen].tolist(), strict=True)


def _units_named(answer: Expanded) -> tuple[list[File], Iterator[tuple[int, str]]]:
    """Returns the units that these name, and for each of these by its number which, each once: a table's lists name
    nearly the same manifests again and again. Of one that is named twice counts the most that is expected of it.
    """
    import numpy as np
    import pyarrow as pa

    wanted = answer.rows.column("opens")
    rows = answer.rows.filter(wanted)
    coded = rows.column("identity").dictionary_encode()
    names, codes = coded.dictionary.to_pylist(), coded.indices.to_numpy()
    facts = [name for name in ("key", "size", "kind", EXPECTS) if name in rows.schema.names]
    expected = with_expectations(rows).column(EXPECTS).fill_null(_UNSAID).to_numpy(zero_copy_only=False)
    most_first = np.lexsort((-expected, codes))
    chosen = most_first[np.unique(codes[most_first], return_index=True)[1]]
    units = [unit_of(row) for row in rows.select(facts).take(pa.array(chosen)).to_pylist()]
    of = answer.of[wanted.to_numpy(zero_copy_only=False)]
    pairs = np.unique(of * len(names) + codes)
    return units, ((pair // len(names), names[pair % len(names)]) for pair in pairs.tolist())


def _differ(one: pa.Array, other: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    import pyarrow.compute as pc

    found: np.ndarray[tuple[int], np.dtype[np.bool_]] = pc.not_equal(one, other).to_numpy(zero_copy_only=False)
    return found


def _outside(names: pa.Array, own: OwnFolders) -> pa.Array:
    """Tells which names lie outside the table's own folders."""
    import pyarrow.compute as pc

    def begin_with(stems: Sequence[str]) -> pa.Array:
        found = pc.is_null(names)
        for stem in stems:
            found = pc.or_(found, pc.starts_with(names, stem))
        return found

    return pc.or_(pc.invert(begin_with(own.folders)), begin_with(own.holes))
