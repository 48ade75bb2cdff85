"""Updates by difference: everything that differs is said or refused, and what is said is true once it is applied."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from firnline.catalogs.rest.commits import RestCommits, fences, is_true, next_fence, requirements_of, updates_of
from firnline.errors import RefusedForSafety
from firnline.ports.catalogs import Version

from .lakes import two_snapshots

Document = dict[str, Any]


@pytest.fixture
def before() -> Document:
    return two_snapshots("s3://b/t") | {
        "refs": {
            "main": {"snapshot-id": 2, "type": "branch"},
            "old": {"snapshot-id": 1, "type": "tag", "max-ref-age-ms": 5},
        },
        "properties": {"a": "1", "b": "2"},
        "schemas": [{"schema-id": 0}, {"schema-id": 1}],
        "current-schema-id": 1,
        "last-column-id": 3,
        "partition-specs": [{"spec-id": 0}, {"spec-id": 1}],
        "default-spec-id": 1,
        "last-partition-id": 1000,
        "statistics": [{"snapshot-id": 1, "statistics-path": "x"}],
        "partition-statistics": [{"snapshot-id": 1, "statistics-path": "y"}],
    }


def edited(before: Document, edit: Callable[[Document], Any]) -> Document:
    after = copy.deepcopy(before)
    edit(after)
    after["metadata-log"] = [{"metadata-file": "m", "timestamp-ms": 1}]
    after["last-updated-ms"] += 1
    return after


def expire_first(document: Document) -> None:
    document["snapshots"].pop(0)
    del document["refs"]["old"]
    document["statistics"], document["partition-statistics"], document["snapshot-log"] = [], [], []


SAID: dict[str, tuple[Callable[[Document], Any], list[Document]]] = {
    "nothing": (lambda d: None, []),
    "an expiry": (
        expire_first,
        [
            {"action": "remove-snapshot-ref", "ref-name": "old"},
            {"action": "remove-statistics", "snapshot-id": 1},
            {"action": "remove-partition-statistics", "snapshot-id": 1},
            {"action": "remove-snapshots", "snapshot-ids": [1]},
        ],
    ),
    "a new tag": (
        lambda d: d["refs"].update(new={"snapshot-id": 1, "type": "tag", "max-ref-age-ms": 7}),
        [{"action": "set-snapshot-ref", "ref-name": "new", "snapshot-id": 1, "type": "tag", "max-ref-age-ms": 7}],
    ),
    "a ref's retention": (
        lambda d: d["refs"]["main"].update({"min-snapshots-to-keep": 3}),
        [{"action": "set-snapshot-ref", "ref-name": "main", "snapshot-id": 2, "type": "branch",
          "min-snapshots-to-keep": 3}],
    ),
    "properties": (
        lambda d: d.update(properties={"b": "3", "c": "4"}),
        [{"action": "set-properties", "updates": {"b": "3", "c": "4"}},
         {"action": "remove-properties", "removals": ["a"]}],
    ),
    "schemas and specs": (
        lambda d: (d["schemas"].pop(0), d["partition-specs"].pop(0)),
        [{"action": "remove-schemas", "schema-ids": [0]}, {"action": "remove-partition-specs", "spec-ids": [0]}],
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", SAID)
def test_every_difference_is_said_and_true_afterwards(before: Document, what: str) -> None:
    edit, expected = SAID[what]
    after = edited(before, edit)
    updates = updates_of(before, after)
    assert updates == expected
    assert all(is_true(update, after) for update in updates)
    assert not any(is_true(update, before) for update in updates)


@pytest.mark.parametrize(
    "edit",
    [
        lambda d: d["snapshots"].append({"snapshot-id": 3}),
        lambda d: d["snapshots"][0].update({"summary": {}}),
        lambda d: d.update({"current-snapshot-id": 1}),
        lambda d: d.update({"location": "s3://b/elsewhere"}),
        lambda d: d.update({"something-new": 1}),
        lambda d: d.pop("last-sequence-number"),
        lambda d: d["schemas"].append({"schema-id": 2}),
        lambda d: d["refs"].update(new={"snapshot-id": 1, "type": "tag", "colour": "blue"}),
        lambda d: d["statistics"].append({"snapshot-id": 2}),
        lambda d: d["statistics"].append({"snapshot-id": 1}),
    ],
)
def test_what_cannot_be_said_is_refused(before: Document, edit: Callable[[Document], Any]) -> None:
    with pytest.raises(RefusedForSafety, match="cannot be told"):
        updates_of(before, edited(before, edit))


def test_a_document_without_refs_has_its_main(before: Document) -> None:
    del before["refs"]
    after = edited(before, lambda d: d.update(refs={"main": {"snapshot-id": 2, "type": "branch"}}))
    assert updates_of(before, after) == []


def asserted(before: Document, edit: Callable[[Document], Any]) -> dict[str, Any]:
    said = requirements_of(before, updates_of(before, edited(before, edit)))
    return {each.get("ref", each["type"]): each.get("snapshot-id", each) for each in said}


def test_every_known_ref_is_asserted_also_those_that_go_and_those_that_come(before: Document) -> None:
    found = asserted(before, expire_first)
    assert found.pop("assert-table-uuid")["uuid"] == before["table-uuid"]
    assert found == {"main": 2, "old": 1, "firnline-fence-1": None}
    found = asserted(before, lambda d: d["refs"].update(new={"snapshot-id": 1, "type": "tag"}))
    assert found["new"] is None


def test_removing_schemas_asserts_that_none_came_since(before: Document) -> None:
    found = asserted(before, lambda d: d["schemas"].pop(0))
    assert found["assert-current-schema-id"]["current-schema-id"] == 1
    assert found["assert-last-assigned-field-id"]["last-assigned-field-id"] == 3
    assert found["assert-default-spec-id"]["default-spec-id"] == 1
    assert found["assert-last-assigned-partition-id"]["last-assigned-partition-id"] == 1000


def test_a_table_without_a_uuid_is_refused(before: Document) -> None:
    del before["table-uuid"]
    with pytest.raises(RefusedForSafety, match="uuid"):
        requirements_of(before, [])


def tried(before: Document) -> dict[str, Any]:
    """Returns what a commit that expires the first snapshot leaves in the record before it is sent."""
    updates = updates_of(before, edited(before, expire_first))
    requirements = requirements_of(before, updates)
    return {"base": "x", "location": None, "updates": updates, "requirements": requirements}


def test_what_was_fenced_off_once_stays_so_whatever_is_fenced_off_after_it(before: Document) -> None:
    """One tag that is moved about comes back to where an earlier try expects it, and lets that one in."""
    proofs: list[dict[str, Any]] = []
    for number in range(1, 6):
        proofs.append(tried(before))
        assert lands(before, proofs) == [proofs[-1]]
        made = fences([next_fence(before)], before)
        assert made is not None
        assert [ref.name for ref in made.refs] == [f"firnline-fence-{number}"]
        for ref in made.refs:
            before["refs"][ref.name] = {"snapshot-id": int(ref.snapshot), "type": "tag"}
        assert lands(before, proofs) == []


def lands(document: Document, proofs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the tries whose every expectation of a ref the table meets: a server would apply them."""
    refs = {name: ref["snapshot-id"] for name, ref in document["refs"].items()}
    asserted = ([each for each in proof["requirements"] if "ref" in each] for proof in proofs)
    met = [all(refs.get(each["ref"]) == each["snapshot-id"] for each in some) for some in asserted]
    said = [RestCommits(None).fence([proof], Version("y", document)) is not None for proof in proofs]  # type: ignore[arg-type]
    assert said == met
    return [proof for proof, may in zip(proofs, met, strict=True) if may]


def test_a_fence_names_a_snapshot_that_stays_anyway(before: Document) -> None:
    """The newest one may be staged, and about to expire: a tag on it would keep it."""
    staged = {**before["snapshots"][0], "snapshot-id": 3, "timestamp-ms": before["snapshots"][1]["timestamp-ms"] + 1}
    before["snapshots"].append(staged)
    for _ in range(3):
        made = fences([next_fence(before)], before)
        assert made is not None
        (ref,) = made.refs
        assert ref.snapshot == "2", "the head of main"
        before["refs"][ref.name] = {"snapshot-id": 2, "type": "tag"}


def test_a_table_without_snapshots_needs_no_fence(before: Document) -> None:
    assert fences(["firnline-fence-1"], before | {"snapshots": [], "refs": {}, "current-snapshot-id": -1}) is None
