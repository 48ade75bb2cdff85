"""The stages of a run: one list, which a plan shows, a run's record keeps, and the run carries out in that order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, assert_never, get_args, get_type_hints

from firnline.model.files import Tally
from firnline.model.times import format_duration
from firnline.plans.pages import counted, tally
from firnline.ports.formats import UndoWindow


@dataclass(frozen=True, slots=True)
class AwaitUndo:
    """Change nothing for this long, so that the run can be called off."""

    grace_ms: int


@dataclass(frozen=True, slots=True)
class ArchiveSnapshots:
    """Hand so many snapshots to a tier, complete and verified; `files` and `bytes` are all that they are made of, also
    what the tier has already.
    """

    tier: str
    snapshots: int
    files: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class CommitExpiry:
    """Remove so many snapshots and refs from the table's metadata, in one commit.

    `final`: the table's catalog takes nothing back, so that the time to undo lies before. `history`: how far back
    the table remembers what expired, in words, None where it does not; `forgets` counts the expired
    snapshots that are older than that and still remembered. `side_objects` counts what else goes.
    """

    snapshots: int
    refs: int
    final: bool = False
    history: str | None = None
    side_objects: int = 0
    forgets: int = 0


@dataclass(frozen=True, slots=True)
class CommitErasure:
    """Put trimmed snapshots into the place of so many, which name so many files no more, in one commit."""

    snapshots: int
    files: int


@dataclass(frozen=True, slots=True)
class BeginGrace:
    """Write down that the operator means it: no table changes, the grace counts from then."""


@dataclass(frozen=True, slots=True)
class AwaitGrace:
    """Leave every byte in place this long, so that readers finish and, where `undo`, the commit can be undone."""

    grace_ms: int
    undo: bool = True


@dataclass(frozen=True, slots=True)
class PurgeVictims:
    """Delete from the written list of victims, batch by batch, each checked again first."""

    files: int
    bytes: int


Stage = AwaitUndo | ArchiveSnapshots | CommitExpiry | CommitErasure | BeginGrace | AwaitGrace | PurgeVictims
_NAMES: Mapping[str, type[Stage]] = {
    "await-undo": AwaitUndo,
    "archive": ArchiveSnapshots,
    "commit": CommitExpiry,
    "commit-erasure": CommitErasure,
    "begin-grace": BeginGrace,
    "await-grace": AwaitGrace,
    "purge": PurgeVictims,
}
_NAME_OF = {kind: name for name, kind in _NAMES.items()}
_TYPES = {
    kind: {name: get_args(declared) or (declared,) for name, declared in get_type_hints(kind).items()}
    for kind in _NAME_OF
}
"""What each field of a stage may be, told once: every look at a run reads its stages."""
Sequences = tuple[tuple[type[Stage], ...], ...]
"""What stages a plan of some kind may have."""
SEARCH_STAGES: Sequences = ((), (BeginGrace, AwaitGrace, PurgeVictims))
ERASURE_STAGES: Sequences = ((CommitErasure, AwaitGrace, PurgeVictims),)
_EXPIRY: tuple[type[Stage], ...] = (CommitExpiry, AwaitGrace, PurgeVictims)
_BEFORE: Sequences = ((), (AwaitUndo,), (ArchiveSnapshots,), (AwaitUndo, ArchiveSnapshots))
EXPIRY_STAGES: Sequences = ((), *((*before, *_EXPIRY) for before in _BEFORE))


def stages_of_expiry(
    commit: CommitExpiry,
    grace_ms: int,
    victims: Tally,
    undo: UndoWindow,
    archive: ArchiveSnapshots | None = None,
    *,
    after_ms: int = 0,
) -> tuple[Stage, ...]:
    """Returns what an expiry does; nothing at all where nothing expires and nothing is forgotten.

    `grace_ms` lies between the command and the delete, and is counted once: where the time to undo lies before the
    commit, it is the first half, and readers have the second. `after_ms` is the least that lies between the commit and
    the delete, whatever was asked.
    """
    if not (commit.snapshots or commit.refs or commit.side_objects or commit.forgets):
        return ()
    before_ms = grace_ms // 2 if undo is UndoWindow.BEFORE_COMMIT else 0
    first: tuple[Stage, ...] = (AwaitUndo(before_ms),) if undo is UndoWindow.BEFORE_COMMIT else ()
    handed: tuple[Stage, ...] = () if archive is None else (archive,)
    readers = AwaitGrace(max(grace_ms - before_ms, after_ms), undo=undo is UndoWindow.AFTER_COMMIT)
    return (*first, *handed, commit, readers, PurgeVictims(victims.files, victims.bytes))


def stages_of_search(grace_ms: int, victims: Tally) -> tuple[Stage, ...]:
    """Returns what the removal of orphans does; nothing at all where there are none."""
    return (BeginGrace(), AwaitGrace(grace_ms), PurgeVictims(victims.files, victims.bytes)) if victims.files else ()


def stages_of_erasure(commit: CommitErasure, grace_ms: int, victims: Tally) -> tuple[Stage, ...]:
    """Returns what an erasure does. Nothing of it can be taken back."""
    return commit, AwaitGrace(grace_ms, undo=False), PurgeVictims(victims.files, victims.bytes)


def stages_json(stages: Sequence[Stage]) -> list[dict[str, Any]]:
    return [{"stage": _NAME_OF[type(each)], **asdict(each)} for each in stages]


def read_stages(said: Sequence[Mapping[str, Any]], allowed: Sequences) -> tuple[Stage, ...]:
    """Returns the stages of a saved plan. Raises ValueError or TypeError for a list that no plan of its kind has: a
    record that leaves the commit or the grace out would let a purge begin at once.
    """
    stages = tuple(_stage(each) for each in said)
    kinds = tuple(type(each) for each in stages)
    if kinds not in allowed:
        raise ValueError("the stages are not those of such a run")
    return stages


def _stage(said: Mapping[str, Any]) -> Stage:
    kind = _NAMES.get(str(said.get("stage")))
    if kind is None:
        raise ValueError(f"no stage is named {said.get('stage')!r}")
    stage = kind(**{name: value for name, value in said.items() if name != "stage"})
    for name, types in _TYPES[kind].items():
        _refuse_strange(name, getattr(stage, name), types)
    return stage


def _refuse_strange(name: str, value: Any, kinds: Sequence[type]) -> None:
    """Raises ValueError unless a value is of one of these types, and no number below zero. A truth value is no number:
    JSON tells them apart.
    """
    if type(value) not in kinds or (type(value) is int and value < 0):
        raise ValueError(f"a stage with {name} {value!r}")


def in_words(stage: Stage) -> str:
    """Returns what a stage does, as it goes on after `would` or `will`."""
    match stage:
        case AwaitUndo(grace_ms):
            return f"first change nothing, undo possible: {format_duration(grace_ms)}"
        case ArchiveSnapshots(tier, snapshots, files, size):
            what = f"hand {counted(snapshots, 'snapshot')} to {tier}"
            return f"{what}, and see that all is there: {tally(Tally(files, size))}"
        case CommitExpiry() | CommitErasure():
            return _commit_in_words(stage)
        case BeginGrace():
            return "change no table"
        case AwaitGrace(grace_ms, undo):
            return f"then wait for readers{', undo possible' if undo else ''}: {format_duration(grace_ms)}"
        case PurgeVictims(files, size):
            return f"then purge: {tally(Tally(files, size))}"
        case _:
            assert_never(stage)


def _commit_in_words(commit: CommitExpiry | CommitErasure) -> str:
    if isinstance(commit, CommitErasure):
        what = f"rewrite {counted(commit.snapshots, 'snapshot')} without {counted(commit.files, 'file')}"
        return f"{what}, in one commit, which cannot be taken back"
    more = [counted(commit.refs, "ref")] if commit.refs else []
    more += [f"{commit.side_objects:,} beside them"] if commit.side_objects else []
    also = "".join(f" and {each}" for each in more)
    how = "in one commit, which cannot be taken back" if commit.final else "in one commit"
    return f"remove {counted(commit.snapshots, 'snapshot')}{also} from the metadata, {how}{_memory_in_words(commit)}"


def _memory_in_words(commit: CommitExpiry) -> str:
    kept = f"; its history remembers them: {commit.history}" if commit.history is not None and commit.snapshots else ""
    gone = f"; its history forgets {counted(commit.forgets, 'expired snapshot')}" if commit.forgets else ""
    return kept + gone
