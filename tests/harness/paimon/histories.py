"""Random histories: what people do to a Paimon table, one step at a time."""

from __future__ import annotations

from py4j.protocol import Py4JJavaError

from harness.paimon import layout
from harness.paimon.choices import Choices
from harness.paimon.environment import PaimonError
from harness.paimon.expiry import Retention, expire
from harness.paimon.java_table import JavaTable
from harness.paimon.reviving import revive
from harness.paimon.shapes import MAIN

WEIGHTS = {
    "append": 12.0,
    "overwrite": 3,
    "delete": 3,
    "compact": 5,
    "compact_fully": 3,
    "merge_manifests": 1,
    "truncate": 0.5,
    "analyze": 1,
    "evolve": 1,
    "abandon": 1,
    "tag": 4,
    "tag_for_a_while": 2,
    "drop_tag": 1.5,
    "branch": 2,
    "empty_branch": 0.5,
    "drop_branch": 0.7,
    "fast_forward": 1,
    "rollback": 1.5,
    "rollback_to_tag": 1,
    "revive": 3,
    "consume": 1,
    "expire": 4,
}
# TypeError: pypaimon trips over manifests without bucket ranges, which Java writes when it merges pypaimon's own.
# EndOfScanException: a compaction found nothing to do.
REFUSALS = (
    "IllegalArgumentException",
    "IllegalStateException",
    "UnsupportedOperationException",
    "EndOfScanException",
    "ValueError",
    "TypeError",
)
CONFLICT = "File deletion conflicts"  # what a compaction finds when its files were compacted meanwhile


class TableSteps(Choices):
    """Steps on one table. A step returns whether there was anything to do it with."""

    def run(self, length: int) -> None:
        """Takes steps until `length` of them were taken."""
        weights = {name: weight * self._rng.choice([0.3, 1, 3]) for name, weight in WEIGHTS.items()}
        if self._shape.decoupled:
            weights["expire"] *= 4
        self.append()
        taken, tries = 0, 0
        while taken < length and tries < 5 * length:
            taken += self.take(self._rng.choices(list(weights), list(weights.values()))[0])
            tries += 1

    def take(self, name: str) -> bool:
        """Takes one step; what Paimon itself refuses (a fast-forward of an empty branch, say) is counted and left."""
        try:
            taken = bool(getattr(self, name)())
        except (Py4JJavaError, PaimonError) as error:
            if not is_refusal(error):
                raise
            self.done[f"refused {name}"] += 1
            return False
        self.done[name] += taken
        return taken

    # ---- rows

    def append(self) -> bool:
        self._able("write").write(self._branch(), self._rows())
        return True

    def overwrite(self) -> bool:
        self._able("write").write(self._branch(), self._rows(), {})
        return True

    def delete(self) -> bool:
        return self._shape.keyed and self._do("delete", self._written(), self._rows())

    def compact(self) -> bool:
        return self._do("compact", self._written(), False)

    def compact_fully(self) -> bool:
        return self._do("compact", self._written(), True)

    def merge_manifests(self) -> bool:
        return self._do("compact_manifests", self._written())

    def truncate(self) -> bool:
        return self._do("truncate", self._written())

    def analyze(self) -> bool:
        return self._do("analyze", self._written())

    def evolve(self) -> bool:
        return self._do("set_option", "snapshot.num-retained.min", str(self._rng.randint(1, 9)))

    def abandon(self) -> bool:
        return self._do("abandon", self._branch(), self._rows())

    # ---- refs

    def tag(self, ttl: str | None = None) -> bool:
        branch = self._written()
        found = [] if branch is None else layout.snapshots(self.folder, branch)
        return bool(found) and self._do("tag", branch, f"t{next(self._number)}", self._rng.choice(found), ttl)

    def tag_for_a_while(self) -> bool:
        return self.tag(self._rng.choice(["1h", "1d", "30d"]))

    def drop_tag(self) -> bool:
        """Paimon deletes the files of a tag whose snapshot is gone, whoever else needs them: such tags stay."""
        branch, fragile = self._branch(), self._is_fragile()
        held = [name for name in layout.tags(self.folder, branch) if not (fragile and self._outlives(branch, name))]
        return bool(held) and self._do("drop_tag", branch, self._rng.choice(held))

    def _is_fragile(self) -> bool:
        """Whether Paimon's deletions would lose files: it protects no branch, and no file that was added again."""
        return len(layout.branches(self.folder)) > 1 or self.done["revive"] > 0

    def _outlives(self, branch: str, tag: str) -> bool:
        document = layout.document(layout.PaimonRoot(branch, layout.TAG, tag).path(self.folder))
        return document["id"] not in layout.snapshots(self.folder, branch)

    def branch(self) -> bool:
        """From a tag whose snapshot is there: without it Paimon fails half-way and leaves an unreadable branch."""
        held = [name for name in layout.tags(self.folder, MAIN) if not self._outlives(MAIN, name)]
        tag = self._rng.choice(held) if held else None
        taken = tag is not None and self._do("create_branch", f"b{next(self._number)}", tag)
        if taken and self._rng.random() < 0.5:
            self._do("drop_tag", MAIN, tag)
        return taken

    def empty_branch(self) -> bool:
        return self._do("create_branch", f"b{next(self._number)}", None)

    def drop_branch(self) -> bool:
        names = layout.branches(self.folder)[1:]
        return bool(names) and self._do("drop_branch", self._rng.choice(names))

    def fast_forward(self) -> bool:
        names = [name for name in layout.branches(self.folder)[1:] if layout.snapshots(self.folder, name)]
        return bool(names) and self._do("fast_forward", self._rng.choice(names))

    def rollback(self) -> bool:
        found = layout.snapshots(self.folder, MAIN)[:-1]
        return bool(found) and self._do("rollback", MAIN, self._rng.choice(found[-4:]))

    def rollback_to_tag(self) -> bool:
        held = layout.tags(self.folder, MAIN)
        return bool(held) and self._do("rollback", MAIN, self._rng.choice(held))

    def revive(self) -> bool:
        """Makes an old snapshot the newest, now and then with the tag that Paimon 2 leaves for its own protection."""
        table, branch = self._able("compact"), self._written()
        if not isinstance(table, JavaTable) or branch is None:
            return False
        for snapshot in self._rng.sample(found := layout.snapshots(self.folder, branch), min(3, len(found))):
            if revive(self._jvm, table, branch, snapshot):
                if self._rng.random() < 0.3:
                    table.tag(branch, f"rollback-to-as-latest-{snapshot}-{next(self._number)}", snapshot)
                return True
        return False

    def consume(self) -> bool:
        branch = self._written()
        found = [] if branch is None else layout.snapshots(self.folder, branch)
        return bool(found) and self._do("consumer", branch, f"c{next(self._number)}", self._rng.choice(found) + 1)

    def expire(self) -> bool:
        """Paimon's own expiry, where it loses nothing."""
        table = self._able("compact")
        if not isinstance(table, JavaTable) or self._is_fragile():
            return False
        most = self._rng.randint(1, 6)
        changelogs = 1000 if self._shape.decoupled else None
        return bool(expire(self._jvm, table, Retention(1, most, changelog_least=changelogs, changelog_most=changelogs)))


def is_refusal(error: Py4JJavaError | PaimonError) -> bool:
    """Tells whether Paimon itself would not do a thing, rather than fail at it."""
    if isinstance(error, PaimonError):
        return error.kind in REFUSALS
    thrown = error.java_exception
    if thrown.getClass().getSimpleName() == "RuntimeException" and thrown.getCause() is not None:
        thrown = thrown.getCause()
    kind = str(thrown.getClass().getSimpleName())
    return kind in REFUSALS or CONFLICT in str(thrown.getMessage())
