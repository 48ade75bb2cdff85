"""What a commit is compared with, before it is sent and after it was done; on histories without a repository."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline.errors import RefusedForSafety
from firnline.formats.icechunk.committing.foretelling import differences, foretold, unlike
from firnline.formats.icechunk.committing.proofs import ExpiryProof, proof_in
from firnline.formats.icechunk.expiring.ancestry import RefHistory
from firnline.formats.icechunk.reading.repository import IcechunkRepository
from firnline.model.snapshots import RefKind
from firnline.ports.catalogs import SwapOutcome
from firnline.ports.stores import ObjectMeta
from firnline.stores.objects import ObjectStores

from .histories import MINUTE, random_histories, sample
from .stepping import attempt_at, step_from, stepped
from .test_commits import noted

NOBODY = ExpiryProof("", None, frozenset(), (), (), None, {}, (), {})


def repository_of(history: RefHistory, spec: int) -> IcechunkRepository:
    refs = {kind: {ref.name: ref.snapshot for ref in history.refs if ref.kind is kind} for kind in RefKind}
    listed = history if spec == 2 else history.without(history.snapshots.keys() - history.reachable())
    return IcechunkRepository("x", spec, refs[RefKind.BRANCH], refs[RefKind.TAG], frozenset(), listed.snapshots)


def proof_for(repository: IcechunkRepository, threshold_us: int) -> ExpiryProof:
    told = foretold(repository, replace(NOBODY, threshold_us=threshold_us))
    parents = {name: each.parent for name, each in told.after.snapshots.items()}
    return replace(NOBODY, threshold_us=threshold_us, gone=told.gone, refs=told.after.refs, parents=parents)


@given(random_histories(), st.sampled_from([1, 2]), st.integers(0, 15), st.integers(0, 15))
def test_a_later_threshold_of_others_is_no_difference(history: RefHistory, spec: int, one: int, other: int) -> None:
    before = repository_of(history, spec)
    proof = proof_for(before, one * MINUTE)
    told = foretold(before, proof)
    assert (told.refused, unlike(proof, told), differences(proof, told.after)) == ((), [], [])
    assert told.edits or told.gone == frozenset()
    after = replace(before, snapshots=told.after.snapshots)
    assert not foretold(after, proof).edits
    theirs = foretold(after, replace(NOBODY, threshold_us=other * MINUTE)).after
    assert differences(proof, theirs) == []
    assert theirs == told.after or other > one


@given(random_histories(), st.sampled_from([1, 2]), st.integers(0, 15))
def test_what_was_not_cut_off_is_a_difference(history: RefHistory, spec: int, minute: int) -> None:
    before = repository_of(history, spec)
    proof = proof_for(before, minute * MINUTE)
    assert bool(differences(proof, RefHistory.of(before))) == foretold(before, proof).edits


def test_each_difference_has_its_sentence() -> None:
    before = repository_of(sample(), 1)
    proof = proof_for(before, 10 * MINUTE)
    after = foretold(before, proof).after
    assert "still leads to" in differences(proof, sample())[0]
    middle = after.edited({"14": "12"})
    assert differences(proof, middle) == ["branch main leads to 12 where it is not meant to"]
    other = RefHistory({**after.snapshots, "0": replace(after.snapshots["0"], parent="x"),
                        "x": replace(after.snapshots["0"], id="x")}, after.refs)  # fmt: skip
    assert "comes from x, not from 0" in differences(proof, other)[0]
    listed = RefHistory({**after.snapshots, "1": sample().snapshots["1"]}, after.refs)
    assert differences(proof, listed) == ["1 is still listed, and no ref leads to it"]


def test_a_record_of_another_shape_is_refused() -> None:
    for record in ({}, {"id": 1}, {**NOBODY.to_json(), "parents": []}, {**NOBODY.to_json(), "gone": 7}):
        with pytest.raises(RefusedForSafety, match="no commit does"):
            proof_in(record, "x")


class PutBack(ObjectStores):
    """A store in which somebody writes a snapshot of version 1 as it was, right after it was changed: nothing of the
    format forbids it.
    """

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.file, self.was = file, file.read_bytes()

    def list(self, prefix: str) -> Iterator[ObjectMeta]:
        if self.file.read_bytes() != self.was:
            self.file.write_bytes(self.was)
        return super().list(prefix)


def test_an_expiry_that_did_not_last(tmp_path: Path) -> None:
    """The repository is looked at once more at the end: what is not as it was meant is told, and not taken for done."""
    made = stepped(tmp_path / "r", 1)
    attempt = attempt_at(made.writing(), step_from(made.version(), made.time(6)))
    store = PutBack(tmp_path / "r" / "snapshots" / made.snapshots[6])
    with pytest.raises(RefusedForSafety, match=r"branch main leads to .* where it is not meant to"):
        made.writing(store).commit(attempt)
    assert (noted(made, ".given-up"), noted(made, ".done")) == (1, 0)
    assert not made.writing().landed(attempt.proof, made.version())
    again = attempt_at(made.writing(), step_from(made.version(), made.time(6)))
    assert made.writing().commit(again) is SwapOutcome.DONE
