"""What became reachable since the plan: only units that the plan had not walked as kept are opened."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from firnline.model.files import File, FileKind
from firnline.model.locations import bare_path, identity
from firnline.model.portions import portions
from firnline.ports.formats import Expand

if TYPE_CHECKING:
    import pyarrow as pa

_THREADS = 8


class Newcomers:
    """Remembers what is needed beyond what the plan had seen. Units never change, so each is opened once."""

    def __init__(self, walked: Iterable[str]) -> None:
        self._known = set(walked)
        self._reached: set[str] = set()
        self._paths: set[str] = set()

    def add(self, roots: Iterable[File], expand: Expand) -> None:
        """Walks from these roots. Raises UnreadableMetadata where a unit cannot be read: then nothing may go."""
        due: dict[str, File] = {}
        for file in roots:
            name = identity(file.key)
            self.reach(name)
            if file.opens and name not in self._known:
                due.setdefault(name, file)
        for kind in expand.order:
            opened = {name: file for name, file in due.items() if file.kind is kind and name not in self._known}
            with ThreadPoolExecutor(_THREADS) as pool:
                for portion in portions(opened.values()):
                    due.update(self._named(expand(portion, pool.map).rows))
            self._known |= opened.keys()

    def _named(self, batch: pa.RecordBatch) -> dict[str, File]:
        """Returns the deeper units that are new; what the units name is remembered as reached."""
        rows = zip(
            *(batch.column(name).to_pylist() for name in ("identity", "key", "size", "kind", "opens")), strict=True
        )
        units: dict[str, File] = {}
        for name, key, size, kind, opens in rows:
            self.reach(name)
            if opens:
                units[name] = File(FileKind(kind), key, size, opens=True)
        return units

    def reach(self, name: str) -> None:
        """Remembers an identity as needed, and its path: under another authority or encoding it may be one object."""
        self._reached.add(name)
        self._paths.add(bare_path(name))

    def spare(self, key: str) -> bool:
        """Tells whether a file on the written list must stay."""
        return identity(key) in self._reached or bare_path(key) in self._paths
