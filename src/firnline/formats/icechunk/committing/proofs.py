"""What a commit does, as the record of its attempt has it: all that another process needs to carry it on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from firnline.errors import RefusedForSafety
from firnline.formats.commit_notes import is_commit
from firnline.formats.icechunk import names
from firnline.formats.icechunk.committing.library import instant
from firnline.formats.icechunk.committing.properties import is_notes
from firnline.formats.icechunk.reading.repository import IcechunkRepository
from firnline.model.snapshots import MAIN, Ref, RefKind
from firnline.ports.catalogs import Step


@dataclass(frozen=True, slots=True)
class ExpiryProof:
    """One commit. `refs` and `parents` are the history after it, as far as refs lead to it; `note` is what firnline's
    notes said before, `properties` what they say then, None where they stay. `loose` are those of `gone` that no ref
    leads to, and that the threshold does not take.
    """

    id: str
    threshold_us: int | None
    gone: frozenset[str]
    delete: tuple[Ref, ...]
    create: tuple[Ref, ...]
    properties: Mapping[str, str] | None
    note: Mapping[str, str]
    refs: tuple[Ref, ...]
    parents: Mapping[str, str | None]
    loose: frozenset[str] = frozenset()

    def line(self, snapshot: str) -> list[str]:
        """Returns what the snapshot's line of ancestors is to be, the newest first."""
        found: dict[str, None] = {}
        here: str | None = snapshot
        while here is not None and here not in found:
            found[here] = None
            here = self.parents.get(here)
        return list(found)

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "threshold_us": self.threshold_us,
            "gone": sorted(self.gone),
            "delete": _written(self.delete),
            "create": _written(self.create),
            "properties": None if self.properties is None else dict(self.properties),
            "note": dict(self.note),
            "refs": _written(self.refs),
            "parents": dict(self.parents),
            "loose": sorted(self.loose),
        }


def proof_of(step: Step, commit_id: str) -> ExpiryProof:
    """Returns what a step does: refs come and go by the difference of the two repositories.

    Raises RefusedForSafety for what a commit here never does: move a ref that stays, or change a snapshot by hand.
    """
    before: IcechunkRepository = step.base.document["repository"]
    after: IcechunkRepository = step.document["repository"]
    noted, properties = dict(step.base.document["properties"]), dict(step.document["properties"])
    old, new = set(before.refs), set(after.refs)
    delete, create = _in_order(old - new), _in_order(new - old)
    _refuse_moves(delete, create)
    _refuse_used_names(create, before)
    return ExpiryProof(
        id=commit_id,
        threshold_us=step.document["threshold_us"],
        gone=frozenset(step.document["gone"]),
        delete=delete,
        create=create,
        properties=None if noted == properties else properties,
        note=noted,
        refs=_in_order(new),
        parents={name: each.parent for name, each in after.snapshots.items()},
        loose=frozenset(step.document.get("loose", ())),
    )


def proof_in(record: Mapping[str, Any], location: str) -> ExpiryProof:
    """Returns the proof that a record holds. A record is no authority: raises RefusedForSafety where it says what no
    commit does.
    """
    try:
        found = ExpiryProof(
            id=record["id"],
            threshold_us=record["threshold_us"],
            gone=frozenset(record["gone"]),
            delete=_read(record["delete"]),
            create=_read(record["create"]),
            properties=record["properties"],
            note=record["note"],
            refs=_read(record["refs"]),
            parents=dict(record["parents"]),
            loose=frozenset(record.get("loose", ())),
        )
        strange = next(_strange(found), None)
    except (KeyError, TypeError, ValueError, OverflowError) as trouble:
        strange = f"{type(trouble).__name__}: {trouble}"
    if strange is not None:
        raise RefusedForSafety(
            f"the record of a commit to {location} names {strange}, which no commit does",
            hint="nothing was changed; the record was edited, or is forged",
        )
    return found


def refuse_paths(proof: ExpiryProof, spec: int, location: str) -> None:
    """Raises RefusedForSafety for a ref of version 1 with a slash in its name: there a name is part of a path, and
    could lead out of the refs. Version 2 gives such names, as git does.
    """
    refs = (*proof.delete, *proof.refs) if spec == 1 else ()
    for ref in (each for each in refs if "/" in each.name):
        raise RefusedForSafety(
            f"the record of a commit to {location} names the {ref.kind} {ref.name!r}, which no commit does",
            hint="nothing was changed; the record was edited, or is forged",
        )


def _strange(proof: ExpiryProof) -> Iterator[str]:
    """Yields what is wrong with a proof."""
    if not is_commit(proof.id):
        yield f"the commit {proof.id!r}"
    if proof.threshold_us is not None:
        if type(proof.threshold_us) is not int:
            yield f"the threshold {proof.threshold_us!r}"
        instant(proof.threshold_us)
    snapshots = (*proof.gone, *proof.parents, *(each for each in proof.parents.values() if each is not None))
    yield from (f"the snapshot {each!r}" for each in snapshots if not names.is_object_name(each))
    yield from (f"the loose snapshot {each!r}" for each in proof.loose - proof.gone)
    refs = (*proof.delete, *proof.create, *proof.refs)
    yield from (f"the {ref.kind} {ref.name!r} at {ref.snapshot!r}" for ref in refs if not _is_sound(ref))
    yield from (f"the {ref.kind} {ref.name!r} to be made" for ref in proof.create if "/" in ref.name)
    yield from (f"the branch {MAIN} to be deleted" for ref in proof.delete if _is_main(ref))
    yield from (f"notes {each!r}" for each in (proof.note, proof.properties or {}) if not is_notes(each))


def _is_sound(ref: Ref) -> bool:
    return bool(ref.name) and names.is_object_name(ref.snapshot)


def _is_main(ref: Ref) -> bool:
    return ref.kind is RefKind.BRANCH and ref.name == MAIN


def _refuse_moves(delete: Sequence[Ref], create: Sequence[Ref]) -> None:
    """Raises RefusedForSafety for a ref that would go and come at another place: only writers move refs."""
    moved = {(ref.kind, ref.name) for ref in delete} & {(ref.kind, ref.name) for ref in create}
    for kind, name in sorted(moved):
        raise RefusedForSafety(f"the {kind} {name} would be moved, which no commit does", hint="nothing was changed")
    if any(_is_main(ref) for ref in delete):
        raise RefusedForSafety(f"the branch {MAIN} would be deleted", hint="nothing was changed")


def _refuse_used_names(create: Sequence[Ref], before: IcechunkRepository) -> None:
    for ref in create:
        if ref.kind is RefKind.TAG and ref.name in before.deleted_tags:
            raise RefusedForSafety(
                f"a tag {ref.name} was deleted once in {before.location}, and Icechunk never gives its name again",
                hint="nothing was changed; take another name for the tag",
            )


def _in_order(refs: Iterable[Ref]) -> tuple[Ref, ...]:
    return tuple(sorted(refs, key=lambda ref: (ref.kind, ref.name)))


def _written(refs: Iterable[Ref]) -> list[list[str]]:
    return [[str(ref.kind), ref.name, ref.snapshot] for ref in refs]


def _read(refs: Iterable[Sequence[str]]) -> tuple[Ref, ...]:
    return tuple(Ref(str(name), RefKind(kind), str(snapshot)) for kind, name, snapshot in refs)
