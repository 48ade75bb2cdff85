"""What other writers and tools do to a table while firnline works: one method per action, each complete in itself.

An action that has nothing to act on any more (its snapshot expired, its file gone, its table dropped) does nothing
and returns False.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count

from firnline.model.snapshots import MAIN
from firnline.model.times import DAY_MS
from harness.writers import Document, TableGone, Writer, head_of

MIN_AGE_MS = 3 * DAY_MS
"""What other tools leave alone because it is young: the default of Iceberg's own orphan removal."""


@dataclass
class Actions:
    """Acts on the table of a writer. `refs` is what was created meanwhile: it must be there at the end."""

    writer: Writer
    refs: dict[str, int] = field(default_factory=dict)
    _names: Iterator[int] = field(default_factory=lambda: count(1))

    def tag(self) -> bool:
        """Tags the oldest snapshot that no ref names: one that an expiry is about to take."""
        return self._name_oldest("tag")

    def branch(self) -> bool:
        return self._name_oldest("branch")

    def append(self) -> bool:
        self.writer.append()
        return True

    def rewrite(self) -> bool:
        """Compacts main into one file."""
        self.writer.compact()
        return True

    def roll_back(self) -> bool:
        """Makes the oldest unreferenced ancestor of main current again, else the one before its head."""
        older = [each for each in ancestors(self.writer.document()) if each != self._head()]
        free = [each for each in older if each in self._unreferenced()]
        if not older:
            return False
        self.writer.roll_back((free or older)[-1])
        return True

    def cherry_pick(self) -> bool:
        """Adds the files of a staged snapshot to main, as a snapshot of its own."""
        document = self.writer.document()
        on_a_branch = {each for name in document["refs"] for each in ancestors(document, name)}
        staged = [each["snapshot-id"] for each in document["snapshots"] if each["snapshot-id"] not in on_a_branch]
        if not staged:
            return False
        held = self.writer.live()
        new = [item for item in self.writer.ledger.truths[staged[0]].live if item not in held]
        self.writer.commit("append", new)
        return bool(new)

    def re_add(self) -> bool:
        """Adds a data file again that main held once or a staged snapshot brought, under its old path."""
        held = {item.path for item in self.writer.live()}
        ours = (path for truth in self.writer.ledger.truths.values() for path in truth.data)
        gone = [path for path in dict.fromkeys(ours) if path not in held and self._is_mine(path)]
        if not gone:
            return False
        self.writer.commit("append", [self.writer.ledger.items[path] for path in gone])
        return True

    def rename(self) -> bool:
        """Gives the table another name; nothing has the old one afterwards."""
        new = f"{self.writer.name}_renamed"
        self.writer.pointers.rename(self.writer.name, new)
        self.writer.name = new
        return True

    def drop_and_recreate(self) -> bool:
        """Drops the table and makes another of the same name and folder, which takes up all files it finds there."""
        self._refuse_gone()
        found = [item for path, item in self.writer.ledger.items.items() if not item.content and self._is_mine(path)]
        self.writer.pointers.drop(self.writer.name)
        self.refs.clear()
        self.writer.create()
        self.writer.commit("append", [self.writer.data_file(), *found])
        return True

    def register_old(self, metadata: str) -> bool:
        """Drops the table and registers an older metadata file of it under its name."""
        self._refuse_gone()
        self.writer.pointers.drop(self.writer.name)
        self.writer.pointers.register(self.writer.name, metadata)
        return True

    def other_expiry(self) -> bool:
        """Another tool's expiry: every snapshot older than three days goes that no ref names, with its own files."""
        if not _may_collect(self.writer.document()):
            return False
        unneeded: set[str] = set()

        def edit(document: Document) -> None:
            every = {each["snapshot-id"] for each in document["snapshots"]}
            gone = set(_old_and_unnamed(document, self.writer.now() - MIN_AGE_MS))
            unneeded.clear()
            unneeded.update(self._needed(document, gone) - self._needed(document, every - gone))
            _without_snapshots(document, gone)

        self.writer.change(edit)
        for path in unneeded:
            self.writer.disk.remove(path)
        return True

    def other_orphan_removal(self) -> bool:
        """Another tool's orphan removal: whatever no snapshot of the table needs goes, unless it is young or hidden."""
        document = self.writer.document()
        if not _may_collect(document):
            return False
        needed = self._needed(document, {each["snapshot-id"] for each in document["snapshots"]})
        needed |= {self.writer.place(), *(each["metadata-file"] for each in document["metadata-log"])}
        oldest = self.writer.now() - MIN_AGE_MS
        for path in [each for each in self._visible() if each not in needed]:
            if self.writer.disk.modified_ms(path) < oldest:  # younger: it may belong to a commit on its way
                self.writer.disk.remove(path)
        return True

    # ---- looking

    def _head(self) -> int | None:
        return head_of(self.writer.document(), MAIN)

    def _unreferenced(self) -> list[int]:
        document = self.writer.document()
        heads = {ref["snapshot-id"] for ref in document["refs"].values()}
        return [each["snapshot-id"] for each in document["snapshots"] if each["snapshot-id"] not in heads]

    def _name_oldest(self, kind: str) -> bool:
        free = self._unreferenced()
        if not free:
            return False
        name = f"made-meanwhile-{next(self._names)}"
        self.writer.set_ref(name, min(free), kind)
        self.refs[name] = min(free)
        return True

    def _is_mine(self, path: str) -> bool:
        return path.startswith(self.writer.location + "/") and self.writer.disk.exists(path)

    def _needed(self, document: Document, snapshots: set[int]) -> set[str]:
        present = {each["snapshot-id"] for each in document["snapshots"]} & snapshots
        files = {path for each in present for path in self.writer.ledger.truths[each].files}
        named = (each for each in document.get("statistics", ()) if each["snapshot-id"] in snapshots)
        return files | {each["statistics-path"] for each in named}

    def _visible(self) -> Iterable[str]:
        """Yields the files of the table's folder; like other tools, it does not look into names with a leading _."""
        root = self.writer.location + "/"
        for path in self.writer.disk.under(root):
            if not any(part.startswith(("_", ".")) for part in path.removeprefix(root).split("/")):
                yield path

    def _refuse_gone(self) -> None:
        if self.writer.pointers.get(self.writer.name) is None:
            raise TableGone(self.writer.name)


def ancestors(document: Document, ref: str = MAIN) -> list[int]:
    """Returns the head of a ref and what is before it, newest first, as far as the table still has it."""
    parents = {each["snapshot-id"]: each.get("parent-snapshot-id") for each in document["snapshots"]}
    found: list[int] = []
    at = head_of(document, ref)
    while at is not None and at in parents:
        found.append(at)
        at = parents[at]
    return found


def _old_and_unnamed(document: Document, oldest_ms: int) -> list[int]:
    heads = {ref["snapshot-id"] for ref in document["refs"].values()}
    old = (each["snapshot-id"] for each in document["snapshots"] if each["timestamp-ms"] < oldest_ms)
    return [snapshot for snapshot in old if snapshot not in heads]


def _may_collect(document: Document) -> bool:
    return str(document["properties"].get("gc.enabled", "true")).lower() == "true"


def _without_snapshots(document: Document, gone: set[int]) -> None:
    document["snapshots"] = [each for each in document["snapshots"] if each["snapshot-id"] not in gone]
    document["statistics"] = [each for each in document["statistics"] if each["snapshot-id"] not in gone]
    known = {each["snapshot-id"] for each in document["snapshots"]}
    log: list[Document] = []
    for entry in document["snapshot-log"]:
        log = [*log, entry] if entry["snapshot-id"] in known else []
    document["snapshot-log"] = log
