"""What every version of a table holds, remembered by its lists: whatever names it later must read just that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError

from harness.paimon import layout
from harness.paimon.environment import PaimonError
from harness.paimon.java_table import JavaTable
from harness.paimon.layout import SNAPSHOT, TAG, PaimonRoot
from harness.paimon.reader import TableReader
from harness.paimon.rows import Rows, java_rows, python_rows, readable
from harness.paimon.shapes import MAIN, Row
from harness.paimon.worlds import Paimon

JAVA, PYTHON = "Java", "pypaimon"


@dataclass(frozen=True, order=True)
class Content:
    """One version of one branch. Its number may be given again, and the names of its lists never are."""

    branch: str
    number: int
    lists: tuple[str, ...]


@dataclass(frozen=True)
class Unread:
    """A reader cannot read it, and says so by this exception."""

    why: str


Reading = tuple[Row, ...] | Unread


class Unmixed(JavaTable):
    """A table whose branches are read one by one, whatever its options say of a branch to fall back to."""

    def open(self, branch: str = MAIN, options: Mapping[str, str] | None = None) -> Any:
        found = super().open(branch)
        while "Fallback" in found.getClass().getSimpleName():
            found = found.wrapped()
        return found.copy(self._jvm.map(options)) if options else found


def contents_of(folder: Path) -> dict[PaimonRoot, Content]:
    """Returns what each snapshot and tag of every branch holds now."""
    return {root: content_of(folder, root) for root in readable(folder)}


def content_of(folder: Path, root: PaimonRoot) -> Content:
    said = layout.document(root.path(folder))
    lists = (said["baseManifestList"], said["deltaManifestList"], said.get("indexManifest") or "")
    return Content(root.branch, said["id"], lists)


def read_by_java(both: Paimon, folder: Path, root: PaimonRoot) -> Reading:
    """Returns the rows. Java looks for tags of a branch among those of the main one."""
    if root.kind == TAG and root.branch != MAIN:
        return Unread("tags of a branch")
    try:
        return java_rows(Unmixed(both.java, folder), [root])[root]
    except Py4JJavaError as error:
        return Unread(str(error.java_exception.getClass().getSimpleName()))


def read_by_python(both: Paimon, folder: Path, root: PaimonRoot) -> Reading:
    try:
        return python_rows(both.python, folder, [root])[root]
    except PaimonError as error:
        return Unread(error.kind)


READERS = {JAVA: read_by_java, PYTHON: read_by_python}


@dataclass
class Memory:
    """Readings by content and reader, taken before firnline had its hands on it, and the files that they need.

    What a reader could not read then it need not read later: that is the reader's own limit, and is counted.
    """

    both: Paimon
    counts: Counter[str]
    readings: dict[tuple[str, Content, bool], Reading] = field(default_factory=dict)
    files: dict[Content, frozenset[str]] = field(default_factory=dict)

    def learn(self, folder: Path, reader: TableReader) -> None:
        """Reads what is new with both, and remembers it."""
        for root, content in contents_of(folder).items():
            for name, read in READERS.items():
                if self._key(name, content, root) not in self.readings:
                    self._note(name, content, root, read(self.both, folder, root))
            if content not in self.files:
                self.files[content] = needed(folder, reader, root)

    def _note(self, name: str, content: Content, root: PaimonRoot, reading: Reading) -> None:
        self.readings[self._key(name, content, root)] = reading
        java = self.readings.get(self._key(JAVA, content, root))
        if isinstance(reading, Unread):
            self.counts[f"versions that {name} cannot read anyway: {reading.why}"] += 1
        elif isinstance(java, tuple) and reading != java:
            self.counts[f"versions of which {name} reads other rows than Java anyway"] += 1

    def _key(self, name: str, content: Content, root: PaimonRoot) -> tuple[str, Content, bool]:
        return name, content, root.kind == TAG

    def check(self, folder: Path) -> Rows:
        """Returns what Java reads. Raises AssertionError where any reader reads anything else than before."""
        found: Rows = {}
        for root, content in contents_of(folder).items():
            for name, read in READERS.items():
                known = self._known(name, content, root)
                assert known is not None, (root, "nobody ever wrote this")
                reading = read(self.both, folder, root)
                if isinstance(known, Unread):
                    self.counts[f"readings that {name} could not do before either: {known.why}"] += 1
                    continue
                assert reading == known, (name, root, known, reading)
                self.counts[f"readings by {name}, equal to those before"] += 1
                if name == JAVA:
                    found[root] = known
        return found

    def _known(self, name: str, content: Content, root: PaimonRoot) -> Reading | None:
        """A tag of firnline's own holds what a snapshot held; a reader may have limits with the one or the other."""
        same = self.readings.get(self._key(name, content, root))
        return same if same is not None else self.readings.get((name, content, root.kind != TAG))

    def rows(self, folder: Path) -> Rows:
        """Returns what Java read of all that is in the table."""
        found = ((root, self._known(JAVA, content, root)) for root, content in contents_of(folder).items())
        return {root: known for root, known in found if isinstance(known, tuple)}

    def forget(self, folder: Path, reader: TableReader) -> list[PaimonRoot]:
        """Returns the roots that Paimon's own steps made unreadable, and forgets what they held."""
        lost = []
        for root, content in contents_of(folder).items():
            key = self._key(JAVA, content, root)
            if key in self.readings and reader.needs(root).missing:
                reading = read_by_java(self.both, folder, root)
                if reading != self.readings[key]:
                    lost.append(root)
                    for name in READERS:
                        self.readings.pop(self._key(name, content, root), None)
        return lost


def needed(folder: Path, reader: TableReader, root: PaimonRoot) -> frozenset[str]:
    """Returns the files behind a version, relative to the table's folder if they lie there: folders are renamed."""
    found = reader.needs(root, as_tag=root.kind == SNAPSHOT).files
    return frozenset(
        relative(path, folder) for path in found if path != str(root.path(folder)) and "/schema/" not in path
    )


def relative(path: str, folder: Path) -> str:
    return path.removeprefix(f"{folder}/")


def there(paths: Iterable[str], folder: Path) -> set[str]:
    """Returns those that exist."""
    return {path for path in paths if (folder / path).exists()}
