"""What one metadata file of a table tells of: a snapshot, a tag, a changelog or a consumer of one branch."""

from __future__ import annotations

from collections.abc import Mapping

from firnline.formats.paimon import names
from firnline.formats.paimon.beside import CHANGELOG, CONSUMER, consumer_name
from firnline.formats.paimon.branches import Branch, branches_of
from firnline.formats.paimon.state import files_in, tag_ref_name
from firnline.formats.paimon.versions import versions_of
from firnline.model.locations import identity, stem_of
from firnline.ports.formats import State, Told


def told_in(state: State, key: str) -> Told | None:
    """Returns what the file is about. A tag of firnline's own is about the snapshot that it holds."""
    name, below = names.split_branch(identity(key).removeprefix(stem_of(state.location)))
    match names.known(below):
        case ("snapshot", number):
            return Told("snapshot", names.snapshot_id(name, int(number)))
        case ("tag", tag):
            return _tag(branches_of(files_in(state), state.location), name, tag)
        case ("changelog", number):
            return Told(CHANGELOG, names.snapshot_id(name, int(number)))
        case ("consumer", consumer):
            return Told(CONSUMER, consumer_name(name, consumer))
        case _:
            return None


def _tag(branches: Mapping[str, Branch], name: str, tag: str) -> Told:
    branch = branches[name]
    if not branch.tags[tag].is_ours:
        return Told("ref", tag_ref_name(name, tag, set(branches)))
    held = next(each for each in versions_of(branch).values() if branch.tags[tag] in each.tags)
    return Told("snapshot", held.id)
