"""Random repositories, written by the icechunk library itself, and what the library answers about them.

Knows nothing of firnline, so that it runs on any interpreter: `python growing.py OUT.tar.xz` writes what
`recorded.py` reads where the installed library cannot write version 2 of the format.
"""

from __future__ import annotations

import json
import random
import sys
import tarfile
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import icechunk
import numpy as np
import zarr

LIBRARY = tuple(int(part) for part in icechunk.__version__.split(".")[:2])
SPECS = (1, 2) if LIBRARY >= (2, 0) else (1,)
INLINE = 48
"""Chunks of fewer bytes are written into the manifest."""


def storage(folder: Path) -> Any:
    return icechunk.local_filesystem_storage(str(folder))


def made(where: Any, spec: int, chunks_of_manifest: int | None = None) -> Any:
    """Returns a new repository."""
    config = icechunk.RepositoryConfig.default()
    config.inline_chunk_threshold_bytes = INLINE
    if chunks_of_manifest is not None:
        split = {
            icechunk.ManifestSplitCondition.AnyArray(): {icechunk.ManifestSplitDimCondition.Any(): chunks_of_manifest}
        }
        config.manifest = icechunk.ManifestConfig(splitting=icechunk.ManifestSplittingConfig.from_dict(split))
    return icechunk.Repository.create(where, config=config, **({} if LIBRARY < (2, 0) else {"spec_version": spec}))


@dataclass
class Growing:
    """A repository, one random step after the other."""

    repo: Any
    choice: random.Random
    spec: int
    deleted_tags: set[str] = field(default_factory=set)
    written: list[str] = field(default_factory=list)
    count: int = 0

    def name(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}-{self.count}"

    def branch(self) -> str:
        return str(self.choice.choice(sorted(self.repo.list_branches())))

    def any_snapshot(self) -> str:
        line = [each.id for each in self.repo.ancestry(branch=self.branch())]
        return str(self.choice.choice(line))

    def commit(self) -> None:
        self.save(self.repo.writable_session(self.branch()))

    def save(self, session: Any, amend: bool = False) -> None:
        group = zarr.open_group(session.store, mode="a")
        for _ in range(self.choice.randint(1, 3)):
            self.change(session, group)
        message = self.name("amended" if amend else "commit")
        if session.has_uncommitted_changes:
            self.written.append(session.amend(message) if amend else session.commit(message))

    def change(self, session: Any, group: Any) -> None:
        arrays = sorted(group.array_keys())
        what = self.choice.random()
        if what < 0.3 or not arrays:
            self.new_array(group)
        elif what < 0.85:
            array = group[self.choice.choice(arrays)]
            first = self.choice.randrange(array.nchunks)
            start, end = first * array.chunks[0], min((first + 3) * array.chunks[0], array.shape[0])
            array[start:end] = np.random.default_rng(self.count).integers(1, 1 << 60, size=end - start)
        elif what < 0.93:
            name = self.choice.choice(arrays)
            place = f"{name}/c/{self.choice.randrange(group[name].nchunks)}"
            session.store.set_virtual_ref(
                place, f"s3://others/{self.name('file')}", offset=3, length=7, validate_container=False
            )
        else:  # whole chunks only, above: nobody reads the files of others
            del group[self.choice.choice(arrays)]

    def new_array(self, group: Any) -> None:
        """Adds an array: of chunks that are objects, of chunks inside the manifest, or of none at all."""
        name, kind = self.name("array"), self.choice.random()
        size = self.choice.randint(8, 60)
        array = group.create_array(
            name, shape=(size,), chunks=(2 if kind < 0.2 else 12,), dtype="i8", compressors=None, fill_value=0
        )
        if kind < 0.9:
            array[:] = np.random.default_rng(self.count).integers(1, 1 << 60, size=size)

    def amend(self) -> None:
        branch = self.branch()
        if len(list(self.repo.ancestry(branch=branch))) > 1:
            self.save(self.repo.writable_session(branch), amend=True)

    def new_branch(self) -> None:
        self.repo.create_branch(self.name("branch"), self.any_snapshot())

    def new_tag(self) -> None:
        self.repo.create_tag(self.name("tag"), self.any_snapshot())

    def drop_tag(self) -> None:
        if tags := sorted(self.repo.list_tags()):
            gone = self.choice.choice(tags)
            self.repo.delete_tag(gone)
            self.deleted_tags.add(gone)

    def drop_branch(self) -> None:
        if others := sorted(self.repo.list_branches() - {"main"}):
            self.repo.delete_branch(self.choice.choice(others))

    def reset(self) -> None:
        branch = self.branch()
        line = [each.id for each in self.repo.ancestry(branch=branch)]
        self.repo.reset_branch(branch, self.choice.choice(line))

    def expire(self) -> None:
        line = [each.written_at for each in self.repo.ancestry(branch=self.branch())]
        self.repo.expire_snapshots(self.choice.choice(line))

    def rewrite(self) -> None:
        self.repo.rewrite_manifests(self.name("rewritten"), branch=self.branch())

    def step(self) -> None:
        steps = {self.commit: 14, self.new_branch: 2, self.new_tag: 3, self.drop_tag: 1, self.drop_branch: 1}
        steps |= {self.reset: 1, self.expire: 1, self.rewrite: 1} | ({self.amend: 2} if self.spec > 1 else {})
        self.choice.choices(list(steps), list(steps.values()))[0]()


def grown(where: Any, seed: int, spec: int, steps: int = 30) -> Growing:
    """Returns the repository of a seed. Its ids are random: only its shape is the same every time."""
    choice = random.Random(seed)
    found = Growing(made(where, spec, choice.choice([None, 2])), choice, spec)
    for _ in range(steps):
        found.step()
    return found


def with_files_of_others(where: Any, spec: int, chunks: int) -> Growing:
    """Returns a repository of one array whose chunks, but for the first, lie in files of others: so many that version 2
    compresses their names.
    """
    found = Growing(made(where, spec), random.Random(0), spec)
    session = found.repo.writable_session("main")
    array = zarr.group(session.store).create_array("a", shape=(chunks * 9,), chunks=(9,), dtype="i8", compressors=None)
    array[:9] = np.arange(9) + 1
    for chunk in range(1, chunks):
        name = f"s3://others/measured/2026/{chunk % 37:05}/file-{chunk}.nc"
        session.store.set_virtual_ref(f"a/c/{chunk}", name, offset=3, length=7, validate_container=False)
    session.commit("with files of others")
    return found


def microseconds(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def answers(grown: Growing) -> dict[str, Any]:
    """Returns what the library says of a repository."""
    repo = grown.repo
    branches = {name: repo.lookup_branch(name) for name in repo.list_branches()}
    tags = {name: repo.lookup_tag(name) for name in repo.list_tags()}
    tips = sorted({*branches.values(), *tags.values()})
    lines = {tip: list(repo.ancestry(snapshot_id=tip)) for tip in tips}
    dry = repo.garbage_collect(datetime.now(UTC) + timedelta(days=1), dry_run=True)
    stats = repo.chunk_storage_stats()
    return {
        "library": icechunk.__version__,
        "spec": grown.spec,
        "branches": branches,
        "tags": tags,
        "deleted_tags": sorted(grown.deleted_tags),
        "ancestry": {
            tip: [[each.id, each.parent_id, microseconds(each.written_at), each.message] for each in line]
            for tip, line in lines.items()
        },
        "manifests": {each.id: manifests(repo, each) for line in lines.values() for each in line},
        "garbage": [dry.snapshots_deleted, dry.manifests_deleted, dry.chunks_deleted],
        "bytes": [stats.native_bytes, stats.virtual_bytes, stats.inlined_bytes],
    }


def manifests(repo: Any, snapshot: Any) -> list[list[Any]]:
    found = snapshot.manifests if LIBRARY < (2, 0) else repo.list_manifest_files(snapshot.id)
    return sorted([each.id, each.size_bytes, each.num_chunk_refs] for each in found)


def main(out: str) -> None:
    """Writes repositories of version 2, one that was upgraded to it, and the library's answers."""
    with tempfile.TemporaryDirectory() as folder, tarfile.open(out, "w:xz") as archive:
        for seed in range(4):
            where, upgraded = Path(folder, str(seed)), seed == 3
            found = grown(storage(where), seed, 1 if upgraded else 2)
            if upgraded:
                found = Growing(
                    icechunk.upgrade_icechunk_repository(found.repo, dry_run=False),
                    found.choice,
                    2,
                    found.deleted_tags,
                    count=found.count,
                )
                for _ in range(10):
                    found.step()
            (where / "answers.json").write_text(json.dumps(answers(found)))
            shrink(where)
        where = Path(folder, "4")
        found = with_files_of_others(storage(where), 2, 1_500)
        (where / "answers.json").write_text(json.dumps(answers(found)))
        archive.add(folder, "recorded", filter=plain)


def shrink(where: Path) -> None:
    """Makes a repository small that nobody will read with the library: chunks of zeros, and few earlier `repo`s."""
    for chunk in (where / "chunks").iterdir():
        chunk.write_bytes(bytes(chunk.stat().st_size))
    for backup in sorted((where / "overwritten").iterdir())[3:]:
        backup.unlink()


def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Returns the member without what only the machine that wrote it knows."""
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    main(sys.argv[1])
