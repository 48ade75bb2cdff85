"""Commits that add, remove and rewrite files. Each returns whether it could do anything."""

from __future__ import annotations

from .subject import Subject


class DataCommits(Subject):
    """Random commits of data and delete files through Java's core API, most often on main."""

    def first_append(self) -> None:
        """A first commit, so that every other operation finds a main branch."""
        self._append(self._table.newFastAppend()).commit()

    def append_fast(self) -> bool:
        name, _ = self._branch(self.state())
        self._append(self._table.newFastAppend().toBranch(name)).commit()
        return True

    def append_merge(self) -> bool:
        name, _ = self._branch(self.state())
        self._append(self._table.newAppend().toBranch(name)).commit()
        return True

    def overwrite(self) -> bool:
        name, head = self._branch(self.state())
        live = self._live(head, 3)
        update = self._table.newOverwrite().toBranch(name).addFile(self._materials.data_file().java)
        for data in live:
            update = update.deleteFile(data.java)
        update.commit()
        return bool(live)

    def replace_partitions(self) -> bool:
        name, _ = self._branch(self.state())
        self._table.newReplacePartitions().toBranch(name).addFile(self._materials.data_file().java).commit()
        return True

    def delete_files(self) -> bool:
        name, head = self._branch(self.state())
        live = self._live(head, 3)
        update = self._table.newDelete().toBranch(name)
        for data in live:
            # By path would reach a protected method of the same name, which deletes the file itself.
            update = update.deleteFile(data.java)
        if live:
            update.commit()
        return bool(live)

    def re_add(self) -> bool:
        """Append a path that the branch had and removed, as a careless writer does."""
        state = self.state()
        name, head = self._branch(state)
        live = set(self._reading.data_files(head))
        known = {path for snapshot in self._ancestors(state, head) for path in self._reading.data_files(snapshot)}
        gone = sorted(known - live)
        update = self._table.newFastAppend().toBranch(name)
        for path in self._some(gone, 2) if gone else []:
            update = update.appendFile(self._materials.data[path].java)
        if gone:
            update.commit()
        return bool(gone)

    def rewrite_data(self) -> bool:
        name, head = self._branch(self.state())
        live = self._live(head, 3)
        if not live:
            return False
        update = self._table.newRewrite().toBranch(name).validateFromSnapshot(head)
        for data in live:
            update = update.deleteFile(data.java)
        update.addFile(self._materials.data_file().java).commit()
        return True

    def rewrite_manifests(self) -> bool:
        same_for_all = self._jvm.function("org.apache.iceberg.ContentFile", "content", "org.apache.iceberg.FileContent")
        self._table.rewriteManifests().clusterBy(same_for_all).commit()
        return True

    # ------------------------------------------------------------ row deletes

    def position_deletes(self) -> bool:
        name, head = self._branch(self.state())
        live = self._live(head, 3) if self.version() == 2 else []
        update = self._table.newRowDelta().toBranch(name).validateFromSnapshot(head)
        for data in live:
            update = update.addDeletes(self._materials.position_deletes(data))
        if live:
            update.commit()
        return bool(live)

    def equality_deletes(self) -> bool:
        if self.version() < 2:
            return False
        name, _ = self._branch(self.state())
        update = self._table.newRowDelta().toBranch(name).addRows(self._materials.data_file().java)
        update.addDeletes(self._materials.equality_deletes()).commit()
        return True

    def deletion_vectors(self) -> bool:
        """Vectors for several data files in one Puffin; an older vector of the same data file goes."""
        name, head = self._branch(self.state())
        live = self._live(head, 4) if self.version() >= 3 else []
        if not live:
            return False
        update = self._table.newRowDelta().toBranch(name).validateFromSnapshot(head)
        for key in self._vectors_of(head, {data.path for data in live}):
            update = update.removeDeletes(self._materials.deletes[key])
        for vector in self._materials.deletion_vectors(live):
            update = update.addDeletes(vector)
        update.commit()
        return True

    def _vectors_of(self, head: int, data: set[str]) -> list[tuple[str, str]]:
        return [key for key in self._reading.delete_files(head) if key[1] in data and key[0].endswith(".puffin")]

    def rewrite_deletes(self) -> bool:
        """Drop or replace a delete file, as compaction of deletes does."""
        name, head = self._branch(self.state())
        old = [key for key in self._reading.delete_files(head) if not key[0].endswith(".puffin")]
        if not old:
            return False
        update = self._table.newRewrite().toBranch(name).validateFromSnapshot(head)
        gone = self._rng.choice(old)
        update = update.deleteFile(self._materials.deletes[gone])
        update.addFile(self._materials.equality_deletes()).commit()
        return True
