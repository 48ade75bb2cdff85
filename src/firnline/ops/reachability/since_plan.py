"""What became reachable since the plan: only units that the plan had not walked as kept are opened, by the engine."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING

from firnline.model.files import File, Root
from firnline.model.locations import identity, known_as, spellings
from firnline.model.snapshots import snapshot_of
from firnline.ports.engines import Engine, ReachedFiles, Territory
from firnline.ports.expanding import Expand
from firnline.ports.stores import AS_CALLED, RealNames

if TYPE_CHECKING:
    from firnline.walking.known import KnownUnits


@dataclass
class ReachableSincePlan:
    """Watches what is needed beyond what the plan had seen. Units never change, so each is opened once.

    The walks run on the engine, and what they reach stays there. Here are the names of the roots, which every look
    reads anyway, and of what is asked about one batch at a time: memory does not grow with the files of the table.

    `walked` are the units that the plan walked as kept, a part of them at a time, and `kept` its snapshots: all that
    these need by those units, it had seen. `real` returns the name that a file has by whatever links it is reached;
    `same` are pairs of folders that are one because the operator says so.
    """

    choose: Callable[[], Engine]
    walked: Iterable[Iterable[str]] = ()
    kept: Collection[str] = ()
    real: RealNames = AS_CALLED
    same: Sequence[tuple[str, str]] = ()
    _look: int = field(default=0, init=False)
    _decided: int = field(default=0, init=False)
    _roots: dict[str, int] = field(default_factory=dict, init=False)
    _paths: set[str] = field(default_factory=set, init=False)
    _names: set[str] = field(default_factory=set, init=False)
    _owners: set[bytes] = field(default_factory=set, init=False)
    _newest: int = field(default=0, init=False)
    _reached: ReachedFiles | None = field(default=None, init=False)

    def add(self, roots: Iterable[Root], expand: Expand, *, by_name: bool = False) -> None:
        """Walks from these roots, all of which are needed. Raises UnreadableMetadata if a unit cannot be read: then
        nothing may go.

        `by_name`: the name of what they reach is enough to spare a file, in whatever folder it lies.
        """
        self._look += 1
        new = (self._new_owners if expand.folds else self._new_units)(roots, by_name)
        if new:
            self._newest = self._look
            self._walk(new, expand, by_name)

    def _walk(self, new: Sequence[Root], expand: Expand, by_name: bool) -> None:
        """Has the engine walk, and remember what is reached. Where units take nothing away those that are known stay
        closed, and what was opened now is known from here on.
        """
        from firnline.walking.known import Unopened

        opening = expand if expand.folds else Unopened(expand, self._known)
        if self._reached is None:
            self._reached = self._engine.reached(everywhere=bool(self.same), real=self.real)
        with closing(self._engine.survey(new, opening, Territory(None))) as survey:
            self._reached.add(survey, self._look, by_name=by_name)
            for batch in () if expand.folds else survey.kept_batches(expand.order):
                self._known.add(batch.column("identity").to_pylist())

    @cached_property
    def _engine(self) -> Engine:
        return self.choose()

    @cached_property
    def _known(self) -> KnownUnits:
        from firnline.walking.known import KnownUnits

        known = KnownUnits()
        for names in self.walked:
            known.add(names)
        return known

    def _new_units(self, roots: Iterable[Root], by_name: bool) -> list[Root]:
        """Returns the roots that are still to be opened."""
        due: dict[str, File] = {}
        for root in roots:
            name = spellings(root.file.key).identity
            self._reach(name, by_name)
            if root.file.opens:
                # A list that must be there for one of them, and may be gone for another, must be there.
                due[name] = min(due.get(name, root.file), root.file, key=lambda each: each.kind)
        return [Root(file, True) for file, known in zip(due.values(), self._known.among(due), strict=True) if not known]

    def _new_owners(self, roots: Iterable[Root], by_name: bool) -> list[Root]:
        """Returns the roots of owners that are new, where units can take away what others name.

        A manifest that was walked for one snapshot says nothing of another: what is dead there may be alive here. So
        each owner is either one that the plan kept, with the very same units, or walked as a whole.
        """
        new: list[Root] = []
        for owner, files in _by_owner(roots).items():
            names = sorted({identity(file.key) for file in files})
            for name in names:
                self._reach(name, by_name)
            digest = sha256("\n".join(names).encode("utf-8", "surrogatepass")).digest()
            if digest in self._owners or self._was_kept(owner, files):
                continue
            self._owners.add(digest)
            new += [Root(file, True, f"{len(self._owners)}") for file in files]
        return new

    def _was_kept(self, owner: str, files: Sequence[File]) -> bool:
        units = [identity(file.key) for file in files if file.opens]
        return snapshot_of(owner) in self.kept and bool(self._known.among(units).all())

    def decide(self) -> None:
        """Says that by what was reached so far it is decided what goes: what is reached from here on is news."""
        self._decided = self._look

    def _reach(self, name: str, by_name: bool) -> None:
        """Remembers a root as needed, and its paths: under another authority, encoding or link it may be one."""
        if name not in self._roots:
            self._newest = self._look
            for each in self._names_of(name, self.real):
                self._roots.setdefault(each, self._look)
                self._paths.add(spellings(each).path)
        if by_name:
            self._names.add(_last(name))

    def _names_of(self, name: str, real: Callable[[str], str]) -> tuple[str, ...]:
        """Returns an identity, and beside it what it really is, where this is another one."""
        really = real(self._meant(name))
        return (name,) if really == name else (name, really)

    def _paths_of(self, name: str, real: Callable[[str], str]) -> tuple[str, ...]:
        """Returns the bare paths of the same."""
        return tuple(spellings(each).path for each in self._names_of(name, real))

    def _meant(self, name: str) -> str:
        return known_as(name, self.same) if self.same else name

    def newly_needed(self, keys: Collection[str]) -> set[str]:
        """Returns which of these very objects, by whatever links, were reached only after it was decided what goes."""
        if not keys or self._newest <= self._decided:
            return set()
        named = {each: key for key in keys for each in self._names_of(spellings(key).identity, self.real.entry)}
        looks = [(key, self._roots[name]) for name, key in named.items() if name in self._roots]
        paths = {spellings(each).path for each in named}
        for name, look, _ in self._found(paths, set(map(_last, paths))):
            looks += [(named[each], look) for each in self._names_of(name, self.real) if each in named]
        return {key for key, _ in looks} - {key for key, look in looks if look <= self._decided}

    def spared(self, keys: Collection[str]) -> set[str]:
        """Returns which files of the written list must stay."""
        if not self._roots:  # nothing was ever reached
            return set()
        by_path: dict[str, list[str]] = {}
        for key in keys:
            for path in self._paths_of(spellings(key).identity, self.real.entry):
                by_path.setdefault(path, []).append(key)
        found = {key for path in by_path.keys() & self._paths for key in by_path[path]}
        if self._reached is None and not self._names:  # no walk reached anything beyond the roots
            return found
        return found | self._spared_by_walks(keys, by_path)

    def _spared_by_walks(self, keys: Collection[str], by_path: Mapping[str, Sequence[str]]) -> set[str]:
        by_name: dict[str, list[str]] = {}
        for key in keys:
            by_name.setdefault(_last(key), []).append(key)
        found = {key for name in by_name.keys() & self._names for key in by_name[name]}
        for name, _, is_by_name in self._found(by_path, {_last(path) for path in by_path}):
            for path in self._paths_of(name, self.real):
                found.update(by_path.get(path, ()))
            found.update(by_name.get(_last(name), ()) if is_by_name else ())
        return found

    def _found(self, paths: Collection[str], names: Collection[str]) -> Iterator[tuple[str, int, bool]]:
        """Yields what walks reached with one of these paths or last names, and perhaps more."""
        for batch in () if self._reached is None else self._reached.find(paths, names):
            yield from zip(*(batch.column(each).to_pylist() for each in ("identity", "walk", "by_name")), strict=True)


def _last(name: str) -> str:
    return name.rpartition("/")[2]


def _by_owner(roots: Iterable[Root]) -> dict[str, list[File]]:
    found: dict[str, list[File]] = {}
    for root in roots:
        found.setdefault(root.owner, []).append(root.file)
    return found
