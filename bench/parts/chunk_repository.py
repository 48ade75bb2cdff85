"""Icechunk repositories of many chunk references, written by the library itself: few objects, each named many times."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import icechunk
import numpy as np
import zarr

INLINE = 4
"""Chunks of fewer bytes would be written into the manifest; those here have eight."""


@dataclass(frozen=True)
class ChunkShape:
    """An array of `chunks` chunks. Each of `commits` changes one, and so writes a manifest that names all of them. A
    branch of `dropped` commits is deleted, and a session that wrote `abandoned` chunks never commits.
    """

    chunks: int
    commits: int
    dropped: int
    abandoned: int

    @property
    def references(self) -> int:
        """How many references have to be read to know what is needed."""
        return self.chunks * self.commits

    @property
    def garbage(self) -> dict[str, int]:
        return {
            "chunk": self.dropped + self.abandoned,
            "manifest": self.dropped,
            "snapshot": self.dropped,
            "transaction-log": self.dropped,
        }

    def tenth(self) -> ChunkShape:
        """A tenth of the references and objects, in as many snapshots and manifests."""
        return ChunkShape(self.chunks // 10, self.commits, self.dropped, self.abandoned // 10)

    def write(self, folder: Path) -> None:
        config = icechunk.RepositoryConfig.default()
        config.inline_chunk_threshold_bytes = INLINE
        repo = icechunk.Repository.create(icechunk.local_filesystem_storage(str(folder)), config=config)
        session = repo.writable_session("main")
        _array(session, self.chunks)[:] = np.arange(1, self.chunks + 1)
        session.commit("all chunks")
        _commits(repo, "main", range(self.commits - 1))
        repo.create_branch("gone", repo.lookup_branch("main"))
        _commits(repo, "gone", range(self.dropped))
        repo.delete_branch("gone")
        abandoned = repo.writable_session("main")
        _opened(abandoned)[: self.abandoned] = -1


def _array(session: Any, chunks: int) -> Any:
    group = zarr.open_group(session.store, mode="a")
    return group.create_array("x", shape=(chunks,), chunks=(1,), dtype="i8", compressors=None, fill_value=0)


def _opened(session: Any) -> Any:
    return zarr.open_group(session.store, mode="a")["x"]


def _commits(repo: Any, branch: str, places: range) -> None:
    for place in places:
        session = repo.writable_session(branch)
        _opened(session)[place] = -1 - place
        session.commit(f"{branch} {place}")
