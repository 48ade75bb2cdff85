"""The metadata of a table, branch by branch, and each snapshot once, however many files hold it.

A version may lie in the snapshot folder, in tags, or in both. After a rollback a number can be given again: then a tag
of the earlier one is a version of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain

from firnline.formats.paimon import names
from firnline.formats.paimon.reading import fields
from firnline.formats.paimon.reading.folder import Files
from firnline.formats.paimon.reading.schema import Schema, is_decoupled, latest_schema
from firnline.formats.paimon.reading.snapshot import Lasting, PaimonSnapshot, parse_snapshot, tag_lasting
from firnline.model.locations import join
from firnline.model.snapshots import SnapshotId


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag holds a whole snapshot, which may be gone from the snapshot folder. `lasting`: None for ever."""

    name: str
    snapshot: PaimonSnapshot
    lasting: Lasting | None

    @property
    def is_ours(self) -> bool:
        return names.is_kept_tag(self.name, self.snapshot.number)


@dataclass(frozen=True, slots=True)
class Branch:
    """One branch. Snapshots by number, tags by name, consumers with the number that each reads next."""

    name: str
    schema: Schema
    snapshots: Mapping[int, PaimonSnapshot] = field(default_factory=dict)
    changelogs: Mapping[int, PaimonSnapshot] = field(default_factory=dict)
    tags: Mapping[str, Tag] = field(default_factory=dict)
    consumers: Mapping[str, int] = field(default_factory=dict)

    @property
    def latest(self) -> int | None:
        return max(self.snapshots, default=None)

    @property
    def decoupled(self) -> bool:
        """Tells whether changelogs outlive their snapshots."""
        return is_decoupled(self.schema)

    @property
    def writes_changelog(self) -> bool:
        return self.schema.options.get("changelog-producer", "none").strip().lower() != "none"


def branches_of(files: Files, location: str) -> dict[str, Branch]:
    """Returns every branch, the main one first. Raises, with the name of the file, where one makes no sense."""
    found = {names.split_branch(path)[0] for path in files}
    return {name: _branch(name, files, location) for name in sorted(found | {names.MAIN})}


def _branch(name: str, files: Files, location: str) -> Branch:
    snapshots: dict[int, PaimonSnapshot] = {}
    changelogs: dict[int, PaimonSnapshot] = {}
    tags: dict[str, Tag] = {}
    consumers: dict[str, int] = {}
    for path, below, text in _of_branch(name, files):
        where = join(location, path)
        match names.known(below):
            case ("snapshot", number):
                snapshots[int(number)] = _numbered(text, int(number), where)
            case ("changelog", number):
                changelogs[int(number)] = _numbered(text, int(number), where)
            case ("tag", tag):
                tags[tag] = Tag(tag, parse_snapshot(text, where), tag_lasting(text, where))
            case ("consumer", consumer):
                consumers[consumer] = fields.whole(fields.parse(text, where), "nextSnapshot", where)
    branch = Branch(name, latest_schema(files, name, location), snapshots, changelogs, tags, consumers)
    _refuse_lost_schema(branch, files, location)
    return branch


def _refuse_lost_schema(branch: Branch, files: Files, location: str) -> None:
    """Raises where a snapshot was written with a schema that is not there: nobody can read it, nor tell its folders."""
    folder = names.branch_folder(branch.name)
    tagged = (tag.snapshot for tag in branch.tags.values())
    for each in chain(branch.snapshots.values(), branch.changelogs.values(), tagged):
        path = f"{folder}schema/schema-{each.schema}"
        if path not in files:
            raise fields.damaged(join(location, path), f"it is missing, and snapshot {each.number} was written with it")


def _of_branch(name: str, files: Files) -> Iterator[tuple[str, str, str]]:
    for path in sorted(files):
        branch, below = names.split_branch(path)
        if branch == name:
            yield path, below, files[path]


def _numbered(text: str, number: int, where: str) -> PaimonSnapshot:
    found = parse_snapshot(text, where)
    if found.number != number:
        raise fields.damaged(where, f"it says that its id is {found.number}")
    return found


@dataclass(frozen=True, slots=True)
class SnapshotVersion:
    """One version of a branch: `in_folder` where its snapshot file is there, and the tags that hold it. `again`: its
    number was given again, and is another version's.
    """

    id: SnapshotId
    branch: str
    snapshot: PaimonSnapshot
    in_folder: bool
    tags: tuple[Tag, ...]
    again: bool = False


def versions_of(branch: Branch) -> Mapping[SnapshotId, SnapshotVersion]:
    """Returns the branch's versions by id, oldest number first."""
    found = sorted(_versions(branch), key=lambda each: (each.snapshot.number, each.in_folder, each.id))
    return {each.id: each for each in found}


def _versions(branch: Branch) -> Iterator[SnapshotVersion]:
    holding: dict[tuple[int, tuple[str, str]], list[Tag]] = {}
    for tag in branch.tags.values():
        holding.setdefault((tag.snapshot.number, tag.snapshot.content), []).append(tag)
    for number, snapshot in branch.snapshots.items():
        tags = holding.pop((number, snapshot.content), [])
        yield SnapshotVersion(names.snapshot_id(branch.name, number), branch.name, snapshot, True, tuple(tags))
    taken = set(branch.snapshots)
    for (number, _), tags in sorted(holding.items()):
        again = number in taken
        taken.add(number)
        known_as = names.snapshot_id(branch.name, number, tags[0].name if again else "")
        yield SnapshotVersion(known_as, branch.name, tags[0].snapshot, False, tuple(tags), again)
