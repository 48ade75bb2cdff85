"""What became reachable since the plan: only units that the plan had not walked as kept are opened."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING

from firnline.model.files import File, FileKind, Root
from firnline.model.locations import identity, spellings
from firnline.model.snapshots import snapshot_of
from firnline.model.spans import portions
from firnline.ports.engines import Engine, Territory
from firnline.ports.expanding import Expand, SideBySide

if TYPE_CHECKING:
    import pyarrow as pa

_THREADS = 8


class ReachableSincePlan:
    """Remembers what is needed beyond what the plan had seen. Units never change, so each is opened once.

    `kept` are the snapshots that the plan kept: all that they need by the units that were walked, it had seen. `real`
    returns the name that a file has by whatever links it is reached.
    """

    def __init__(self, walked: Iterable[str], kept: Iterable[str] = (), real: Callable[[str], str] = str) -> None:
        self._known = set(walked)
        self._real = real
        self._kept = set(kept)
        self._owners: set[frozenset[str]] = set()
        self._reached: set[str] = set()
        self._news: set[str] = set()
        self._paths: set[str] = set()
        self._names: set[str] = set()

    def add(self, roots: Iterable[File], expand: Expand, *, by_name: bool = False) -> None:
        """Walks from these roots. Raises UnreadableMetadata where a unit cannot be read: then nothing may go.

        `by_name`: the name of what they reach is enough to spare a file, in whatever folder it lies.
        """
        due: dict[str, File] = {}
        for file in roots:
            name = spellings(file.key).identity
            self.reach(name, by_name)
            if file.opens and name not in self._known:
                # A list that must be there for one of them, and may be gone for another, must be there.
                due[name] = min(due.get(name, file), file, key=lambda each: each.kind)
        for kind in expand.order:
            opened = {name: file for name, file in due.items() if file.kind is kind and name not in self._known}
            with ThreadPoolExecutor(_THREADS) as pool:
                for portion in portions(opened.values()):
                    due.update(self._named(expand(portion, SideBySide(pool)).rows, by_name))
            self._known |= opened.keys()

    def add_folding(self, roots: Sequence[Root], expand: Expand, engine: Engine) -> None:
        """Walks from these roots where units can take away what others name.

        A manifest that was walked for one snapshot says nothing of another: what is dead there may be alive here. So
        each owner is either one that the plan kept, with the very same units, or walked as a whole.
        """
        new: list[Root] = []
        for owner, files in _by_owner(roots).items():
            names = frozenset(identity(file.key) for file in files)
            units = {identity(file.key) for file in files if file.opens}
            for name in names:
                self.reach(name)
            if names in self._owners or (snapshot_of(owner) in self._kept and units <= self._known):
                continue
            self._owners.add(names)
            new += [Root(file, True, f"{len(self._owners)}") for file in files]
        if not new:
            return
        with closing(engine.survey(new, expand, Territory(None))) as survey:
            for batch in survey.kept_batches():
                for name in batch.column("identity").to_pylist():
                    self.reach(name)

    def _named(self, batch: pa.RecordBatch, by_name: bool) -> dict[str, File]:
        """Returns the deeper units that are new; what the units name is remembered as reached."""
        rows = zip(
            *(batch.column(name).to_pylist() for name in ("identity", "key", "size", "kind", "opens")), strict=True
        )
        units: dict[str, File] = {}
        for name, key, size, kind, opens in rows:
            self.reach(name, by_name)
            if opens:
                units[name] = File(FileKind(kind), key, size, opens=True)
        return units

    def decide(self) -> None:
        """Says that by what was reached so far it is decided what goes: what is reached from here on is news."""
        self._news.clear()

    def reach(self, name: str, by_name: bool = False) -> None:
        """Remembers an identity as needed, and its paths: under another authority, encoding or link it may be one."""
        if name not in self._reached:
            self._news.add(name)
        self._reached.add(name)
        self._paths.add(spellings(name).path)
        real = self._real(name)
        if real != name:
            self._paths.add(spellings(real).path)
        if by_name:
            self._names.add(name.rpartition("/")[2])

    def newly_needed(self, key: str) -> bool:
        """Tells whether this very object was reached only after it was decided what goes."""
        return bool(self._news) and spellings(key).identity in self._news

    def spare(self, key: str) -> bool:
        """Tells whether a file on the written list must stay."""
        if not self._reached:
            return False
        if self._names and key.rpartition("/")[2] in self._names:
            return True
        name, path = spellings(key)
        if name in self._reached or path in self._paths:
            return True
        real = self._real(name)
        return real != name and spellings(real).path in self._paths


def _by_owner(roots: Iterable[Root]) -> dict[str, list[File]]:
    found: dict[str, list[File]] = {}
    for root in roots:
        found.setdefault(root.owner, []).append(root.file)
    return found
