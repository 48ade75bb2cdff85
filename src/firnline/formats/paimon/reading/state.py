"""From a table's metadata files to the State that every other part works on; and what one such file tells of."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

from firnline.errors import UnsupportedFormat
from firnline.formats.notes import notes_here
from firnline.formats.paimon import names
from firnline.formats.paimon.reading import fields
from firnline.formats.paimon.reading.branches import Branch, SnapshotVersion, branches_of, versions_of
from firnline.formats.paimon.reading.folder import Files, version_name
from firnline.formats.paimon.reading.schema import Schema, range_of
from firnline.formats.paimon.reading.side_objects import CHANGELOG, CONSUMER, consumer_name, consumers_of
from firnline.journal.layout import PROPERTIES
from firnline.model.graph import Graph
from firnline.model.holds import Pin
from firnline.model.locations import identity, join, stem_of
from firnline.model.snapshots import MAIN, Ref, RefKind, Snapshot
from firnline.policy.holds import parse_holds, unreadable
from firnline.policy.native import NativeRetention
from firnline.policy.periods import LONGEST_AGE_MS
from firnline.ports.abilities import Subject
from firnline.ports.formats import Capabilities, FenceKind, State, UndoWindow

_SEEN_STORAGES = ("disabled", "table-location", "hadoop-catalog", "hive-catalog")
"""Where Paimon keeps metadata for Iceberg's readers in folders that are always looked at."""


def state_of(files: Files, table: str, location: str, modified: Mapping[str, int] | None = None) -> State:
    """Returns the table's state. Raises, naming the file, where anything is damaged or not understood.

    `modified` says when consumers and tags with an end were last written: the one thing that no text tells.
    """
    written = modified or {}
    branches = branches_of(files, location)
    if MAIN in branches:
        raise UnsupportedFormat(
            f"{join(location, names.branch_folder(MAIN))} is a second main branch", hint="nothing was changed"
        )
    main = branches[names.MAIN]
    properties = properties_of(files, main, location)
    ranges = {ref_name(branch): range_of(branch.schema, properties) for branch in branches.values()}
    holds = parse_holds(properties)
    native = NativeRetention(ranges[MAIN].age_ms, ranges[MAIN].at_least, LONGEST_AGE_MS, ranges=ranges)
    return State(
        table=table,
        format="paimon",
        location=location,
        uuid=_uuid(files),
        fence=version_name(files, location),
        graph=Graph(each for branch in branches.values() for each in _snapshots(branch)),
        current=None if main.latest is None else names.snapshot_id(names.MAIN, main.latest),
        refs=_all_refs(branches, location, written),
        native=native,
        capabilities=Capabilities(FenceKind.NONE, UndoWindow.AFTER_COMMIT),
        properties=properties,
        document={"files": files, "modified": written},
        owned=folders_of(location, main.schema),
        holds=holds,
        pins=tuple(pin for branch in branches.values() for pin in _pins(branch, written)),
        forbidden=unreadable(holds) or _forbidden(main, properties),
    )


def files_in(state: State) -> Files:
    files: Files = state.document["files"]
    return files


def modified_in(state: State) -> Mapping[str, int]:
    """Returns when each consumer, and each tag with an end, was last written, by path."""
    modified: Mapping[str, int] = state.document["modified"]
    return modified


def ref_name(branch: Branch) -> str:
    return branch.name or MAIN


def tag_ref_name(branch: str, tag: str, branches: set[str]) -> str:
    """Returns the name of a tag among all refs of the table: other branches have tags of their own."""
    if branch:
        return f"{branch}:{tag}"
    return f"tag:{tag}" if tag in branches or tag == MAIN else tag


def properties_of(files: Files, main: Branch, location: str) -> Mapping[str, str]:
    """Returns the table's options, and what firnline noted beside them."""
    text = files.get(PROPERTIES)
    where = join(location, PROPERTIES)
    own = {} if text is None else fields.texts({"own": fields.parse(text, where)}, "own", where)
    return {**main.schema.options, **notes_here(own, location)}


def _uuid(files: Files) -> str:
    """Returns what tells the table from one that was made again in its place: a digest of its first schema, which says
    when the table was made. Paimon gives tables in a file system no id.
    """
    found = {each[1]: path for path in files if (each := names.numbered(path)) and each[0] == "schema"}
    return hashlib.sha256(files[found[min(found)]].encode()).hexdigest()[:32]


def _snapshots(branch: Branch) -> Iterator[Snapshot]:
    """Yields the versions, each with the one before it as its parent. A tag of a number that was given again, or that a
    rollback left above the newest, is before nothing.
    """
    parent: str | None = None
    for version in versions_of(branch).values():
        in_row = not version.again and version.snapshot.number <= (branch.latest or 0)
        number = version.snapshot.number if version.in_folder else None
        yield Snapshot(version.id, parent if in_row else None, version.snapshot.time_ms, version.snapshot.kind, number)
        parent = version.id if in_row else parent


def _all_refs(branches: Mapping[str, Branch], location: str, written: Mapping[str, int]) -> dict[str, Ref]:
    """Returns every ref. Raises where two would have one name: who dropped the one would drop the other."""
    found: dict[str, Ref] = {}
    for ref in (ref for branch in branches.values() for ref in _refs(branch, set(branches), written)):
        other = found.setdefault(ref.name, ref)
        if other is not ref:
            raise UnsupportedFormat(
                f"two refs of {location} are called {ref.name}: a {other.kind} at {other.snapshot} and a {ref.kind} at "
                f"{ref.snapshot}",
                hint="nothing was changed; give one of them another name, with Paimon itself",
            )
    return found


def _refs(branch: Branch, branches: set[str], written: Mapping[str, int]) -> Iterator[Ref]:
    if branch.latest is not None:
        yield Ref(ref_name(branch), RefKind.BRANCH, names.snapshot_id(branch.name, branch.latest))
    end = fields.flag(branch.schema.options, "tag.time-expire-enabled", True, branch.schema.where)
    for version in versions_of(branch).values():
        yield from _tags(version, branches, written if end else None)


def _tags(version: SnapshotVersion, branches: set[str], written: Mapping[str, int] | None) -> Iterator[Ref]:
    """Yields the tags that people and writers made. Firnline's own say nothing: the policy decides anew on what they
    hold.

    `written` are the times of their files; None where the table lets no tag go when its time is over.
    """
    for tag in version.tags:
        if not tag.is_ours:
            at_ms = None if written is None else written.get(names.tag_file(version.branch, tag.name))
            ends_ms = None if written is None or tag.lasting is None else tag.lasting.ends_ms(at_ms)
            age = None if ends_ms is None else ends_ms - version.snapshot.time_ms
            yield Ref(tag_ref_name(version.branch, tag.name, branches), RefKind.TAG, version.id, age)


def _pins(branch: Branch, modified: Mapping[str, int]) -> Iterator[Pin]:
    """Yields what consumers still read: everything from their next snapshot on."""
    if branch.decoupled and fields.flag(branch.schema.options, "consumer.changelog-only", False, branch.schema.where):
        return
    for name, consumer in consumers_of(branch, modified).items():
        reads = f"consumer {name}, which reads from {consumer.following} on"
        moved_ms = modified.get(names.consumer_file(branch.name, name))
        for number in branch.snapshots:
            if number >= consumer.following:
                yield Pin(names.snapshot_id(branch.name, number), reads, consumer.until_ms, moved_ms)


def folders_of(location: str, schema: Schema) -> tuple[str, ...]:
    """Returns the folders that a table writes to: its own, and those outside of it."""
    said = schema.options.get("data-file.external-paths", "")
    return (location, *(path.strip() for path in said.split(",") if path.strip()))


def _forbidden(main: Branch, properties: Mapping[str, str]) -> str | None:
    """Returns why nothing may be removed: the table says so, or the files are also those of another format's metadata
    in a place that is not looked at.
    """
    if properties.get("gc.enabled", "true").lower() != "true":
        return "the note gc.enabled is not true"
    storage = main.schema.options.get("metadata.iceberg.storage", "disabled").strip().lower()
    seen = storage in _SEEN_STORAGES
    return None if seen else f"its files are also an Iceberg table's (metadata.iceberg.storage={storage})"


def subject_of(state: State, key: str) -> Subject | None:
    """Returns what the file is about. A tag of firnline's own is about the snapshot that it holds."""
    name, below = names.split_branch(identity(key).removeprefix(stem_of(state.location)))
    match names.known(below):
        case ("snapshot", number):
            return Subject("snapshot", names.snapshot_id(name, int(number)))
        case ("tag", tag):
            return _tag(branches_of(files_in(state), state.location), name, tag)
        case ("changelog", number):
            return Subject(CHANGELOG, names.snapshot_id(name, int(number)))
        case ("consumer", consumer):
            return Subject(CONSUMER, consumer_name(name, consumer))
        case _:
            return None


def _tag(branches: Mapping[str, Branch], name: str, tag: str) -> Subject:
    branch = branches[name]
    if not branch.tags[tag].is_ours:
        return Subject("ref", tag_ref_name(name, tag, set(branches)))
    held = next(each for each in versions_of(branch).values() if branch.tags[tag] in each.tags)
    return Subject("snapshot", held.id)
