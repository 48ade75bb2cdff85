"""What the library would do to a repository as it is now, and whether what it did is what was meant. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from firnline.foreign import harmless
from firnline.formats.icechunk.committing.proofs import ExpiryProof
from firnline.formats.icechunk.expiring.ancestry import RefHistory, survivors_since
from firnline.formats.icechunk.expiring.expressing import refusals
from firnline.formats.icechunk.expiring.fitting import manner_of
from firnline.formats.icechunk.expiring.loose_ends import loose, without_followers
from firnline.formats.icechunk.expiring.rewriting import rewritten
from firnline.formats.icechunk.reading.repository import IcechunkRepository

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Foretold:
    """The history as it will be read; `refused` is why the library must not be asked, `edits` whether the threshold
    leaves it anything to do.
    """

    after: RefHistory
    gone: frozenset[str]
    edits: bool
    refused: tuple[str, ...] = ()


def foretold(repository: IcechunkRepository, proof: ExpiryProof) -> Foretold:
    """Returns what the refs and the threshold of a commit make of the repository as it is now."""
    before, lost = _with_refs(repository, proof)
    if proof.threshold_us is None:
        return _foretold(repository, before, before, proof)
    survivors = survivors_since(before, proof.threshold_us)
    if refused := [*(f"{each} is in no history any more" for each in lost), *refusals(before, survivors)]:
        return Foretold(before, frozenset(), False, tuple(refused))
    return _foretold(repository, before, rewritten(before, survivors, manner_of(repository.spec)).after, proof)


def _with_refs(repository: IcechunkRepository, proof: ExpiryProof) -> tuple[RefHistory, list[str]]:
    """Returns the history with the refs that come and without those that go, and what such refs name outside of it: on
    version 1 a branch may come back to where it was before it was deleted, which nothing leads to now.
    """
    refs = sorted((set(repository.refs) | set(proof.create)) - set(proof.delete), key=lambda ref: (ref.kind, ref.name))
    known = tuple(ref for ref in refs if ref.snapshot in repository.snapshots)
    return RefHistory(repository.snapshots, known), [ref.snapshot for ref in refs if ref not in known]


def _foretold(repository: IcechunkRepository, before: RefHistory, after: RefHistory, proof: ExpiryProof) -> Foretold:
    """Returns what will be read: of version 1 what refs lead to, of version 2 what is listed."""
    edits = after.snapshots != before.snapshots
    if repository.spec == 1:
        after = after.without(after.snapshots.keys() - after.reachable())
    elif proof.loose:
        after = after.without(without_followers(after, proof.loose))
    return Foretold(after, frozenset(repository.snapshots.keys() - after.snapshots.keys()), edits)


def differences(proof: ExpiryProof, history: RefHistory) -> list[str]:
    """Returns what is not as the commit left it, a sentence each.

    Only refs that are where the commit left them are looked at: what others made, moved or deleted since is theirs. A
    line may end earlier than was meant: that is what another expiry with a later threshold does. It may not lead
    to what was to go, nor leave out one in the middle, nor come from another root.
    """
    found = list[str]()
    stands = set(history.refs)
    for ref in proof.refs:
        if ref in stands:
            why = _differs(list(history.line(ref.snapshot)), proof.line(ref.snapshot), proof)
            found += [f"{ref.kind} {harmless(ref.name)} {why}"] if why else []
    return [*found, *(f"{each} is still listed, and no ref leads to it" for each in _still_listed(proof, history))][
        :_SHOWN
    ]


def _still_listed(proof: ExpiryProof, history: RefHistory) -> list[str]:
    """Returns what is loose and should not be there. Of what goes by itself, what another went on from stays."""
    below = proof.gone - proof.loose
    return sorted((loose(history) & below) | without_followers(history, proof.loose))


def unlike(proof: ExpiryProof, told: Foretold) -> list[str]:
    """Returns the first differences between what was decided and what the library would do, a sentence each."""
    lines = ((ref, list(told.after.line(ref.snapshot))) for ref in told.after.refs)
    others = (ref for ref, line in lines if line != proof.line(ref.snapshot))
    return [
        *(f"{each} would go, which is to stay" for each in sorted(told.gone - proof.gone)),
        *(f"{each} would stay, which is to go" for each in sorted(proof.gone - told.gone)),
        *(f"{ref.kind} {harmless(ref.name)} would have another line of ancestors" for ref in others),
    ][:_SHOWN]


def _differs(line: list[str], meant: list[str], proof: ExpiryProof) -> str | None:
    if still := [each for each in line if each in proof.gone]:
        return f"still leads to {still[0]}"
    if line[-1] != meant[-1]:
        return f"comes from {line[-1]}, not from {meant[-1]}"
    if line[:-1] != meant[: len(line) - 1]:
        return f"leads to {_first_other(line, meant)} where it is not meant to"
    return None


def _first_other(line: list[str], meant: list[str]) -> str:
    pairs: Iterator[tuple[str, str]] = zip(line, [*meant, *line], strict=False)
    return next((one for one, other in pairs if one != other), line[-1])
