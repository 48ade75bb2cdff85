"""Commits that move history and refs. Each returns whether it could do anything."""

from __future__ import annotations

from py4j.protocol import Py4JJavaError

from .backdating import age
from .subject import Subject


class HistoryCommits(Subject):
    """Random rollbacks, staged commits, cherry-picks, branches, tags and their retention."""

    def rollback(self) -> bool:
        state = self.state()
        line = self._ancestors(state, state["current-snapshot-id"])[1:4]
        if line:
            self._table.manageSnapshots().rollbackTo(self._rng.choice(line)).commit()
        return bool(line)

    def set_current(self) -> bool:
        chosen = self._rng.choice(self._ids(self.state())[-6:])
        self._table.manageSnapshots().setCurrentSnapshot(chosen).commit()
        return True

    def stage(self) -> bool:
        before = set(self._ids(self.state()))
        update = self._table.newAppend() if self._rng.random() < 0.7 else self._table.newFastAppend()
        self._append(update.set("wap.id", self._name("wap")).stageOnly(), 2).commit()
        self._staged.extend(set(self._ids(self.state())) - before)
        return True

    def cherry_pick(self) -> bool:
        staged = [snapshot for snapshot in self._staged if snapshot in self._ids(self.state())]
        if not staged:
            return False
        chosen = self._rng.choice(staged)
        self._staged.remove(chosen)
        try:
            self._table.manageSnapshots().cherrypick(chosen).commit()
        except Py4JJavaError as refused:  # its history was published another way already
            if "DuplicateWAPCommitException" not in str(refused):
                raise
            return False
        return True

    def gap(self) -> bool:
        """Take one snapshot out of the metadata, as an earlier expiry by id did; its children keep its id."""
        state = self.state()
        heads = {ref["snapshot-id"] for ref in state["refs"].values()}
        free = [snapshot for snapshot in self._ids(state) if snapshot not in heads]
        if free:
            update = self._table.expireSnapshots().expireSnapshotId(self._rng.choice(free))
            update.expireOlderThan(1).cleanExpiredFiles(False).commit()
        return bool(free)

    # ------------------------------------------------------------ refs

    def branch(self) -> bool:
        chosen = self._rng.choice(self._ids(self.state())[-8:])
        self._table.manageSnapshots().createBranch(self._name("branch"), chosen).commit()
        return True

    def tag(self) -> bool:
        chosen = self._rng.choice(self._ids(self.state()))
        self._table.manageSnapshots().createTag(self._name("tag"), chosen).commit()
        return True

    def drop_ref(self) -> bool:
        state = self.state()
        removals = [("removeTag", name) for name in self._heads(state, "tag")]
        removals += [("removeBranch", name) for name in self._heads(state, "branch") if name != "main"]
        if removals:
            method, name = self._rng.choice(removals)
            getattr(self._table.manageSnapshots(), method)(name).commit()
        return bool(removals)

    def fast_forward(self) -> bool:
        state = self.state()
        branches = self._heads(state, "branch")
        pairs = [
            (behind, ahead)
            for behind, tail in branches.items()
            for ahead, head in branches.items()
            if tail in self._ancestors(state, head)[1:]
        ]
        if pairs:
            self._table.manageSnapshots().fastForwardBranch(*self._rng.choice(pairs)).commit()
        return bool(pairs)

    def replace_ref(self) -> bool:
        state = self.state()
        moves = [("replaceTag", name) for name in self._heads(state, "tag")]
        moves += [("replaceBranch", name) for name in self._heads(state, "branch") if name != "main"]
        if moves:
            method, name = self._rng.choice(moves)
            getattr(self._table.manageSnapshots(), method)(name, self._rng.choice(self._ids(state))).commit()
        return bool(moves)

    def ref_retention(self) -> bool:
        others = [name for name in sorted(self.state()["refs"]) if name != "main"]
        if others:
            self._retain(self._rng.choice(others))
        return bool(others)

    def main_retention(self) -> bool:
        self._retain("main")
        return True

    def _retain(self, name: str) -> None:
        update = self._table.manageSnapshots()
        branch = self.state()["refs"][name]["type"] == "branch"
        if name != "main" and (not branch or self._rng.random() < 0.7):
            update = update.setMaxRefAgeMs(name, age(self._rng))
        if branch and self._rng.random() < 0.6:
            update = update.setMaxSnapshotAgeMs(name, age(self._rng))
        if branch and self._rng.random() < 0.6:
            update = update.setMinSnapshotsToKeep(name, self._rng.randint(1, 6))
        update.commit()
