"""The few verbs of the library that commits are made of, and what becomes of its troubles."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import icechunk
import pytest

from firnline.errors import FirnlineError, OutcomeUnknown, RefusedForSafety, StoreError, UnsupportedFormat
from firnline.formats.icechunk.committing.access import s3_words, storage_at
from firnline.formats.icechunk.committing.commits import IcechunkCommits
from firnline.formats.icechunk.committing.library import LibraryRepository
from firnline.formats.icechunk.versions import place_of, version_name
from firnline.model.snapshots import MAIN, Ref, RefKind
from firnline.ports.catalogs import SwapOutcome

from .growing import LIBRARY, SPECS, storage
from .repositories import STORE, body_of, packed
from .stepping import Stepped, attempt_at, step_from, stepped, version_at


def opened(made: Stepped) -> LibraryRepository:
    return LibraryRepository.at(made.location, {})


@pytest.mark.parametrize("spec", SPECS)
def test_refs_come_and_go(tmp_path: Path, spec: int) -> None:
    made = stepped(tmp_path / "r", spec)
    library = opened(made)
    for kind in RefKind:
        ref = Ref("new", kind, made.snapshots[1])
        assert library.points_to(kind, "new") is None
        library.create(ref)
        assert library.points_to(kind, "new") == ref.snapshot
        assert (kind, "new") in library.names()
        with pytest.raises(RefusedForSafety, match="refused making"):
            library.create(ref)
        library.delete(ref)
        assert library.points_to(kind, "new") is None
        with pytest.raises(RefusedForSafety, match="refused deleting"):
            library.delete(ref)
    with pytest.raises(RefusedForSafety, match="the tag new"):
        library.create(Ref("new", RefKind.TAG, made.snapshots[1]))
    slashed = [Ref("x/y", RefKind.TAG, made.snapshots[1])] if spec == 1 else []  # version 2 has no files of refs
    for wrong in (*slashed, Ref("x", RefKind.TAG, "no-snapshot")):
        with pytest.raises(RefusedForSafety, match="refused making"):
            library.create(wrong)
    with pytest.raises(RefusedForSafety, match="refused deleting the branch main"):
        library.delete(Ref(MAIN, RefKind.BRANCH, made.snapshots[6]))


@pytest.mark.parametrize("spec", SPECS)
def test_an_expiry_deletes_no_ref(tmp_path: Path, spec: int) -> None:
    made = stepped(tmp_path / "r", spec)
    before = set(made.read().refs)
    assert made.snapshots[1] in opened(made).expire(made.time(6) + 1)
    assert set(made.read().refs) == before


def test_an_expiry_that_breaks_off(tmp_path: Path) -> None:
    """An object is missing: the library may have changed some lines by then."""
    made = stepped(tmp_path / "r", 1)
    threshold = made.time(6)
    library = opened(made)
    (tmp_path / "r" / "snapshots" / made.snapshots[1]).unlink()
    with pytest.raises(OutcomeUnknown, match="broke off expiring"):
        library.expire(threshold)


def test_a_panic_is_an_error_of_ours(tmp_path: Path) -> None:
    """A first snapshot that is younger than one that is to go: the library of 1.x stops at an assertion of its own."""
    made = stepped(tmp_path / "r", 1)
    found = made.read().snapshots
    root = found[made.snapshots[0]].flushed_us
    file = tmp_path / "r" / "snapshots" / made.snapshots[0]
    body = body_of(file.read_bytes())
    assert body.count(root.to_bytes(8, "little")) == 1
    later = made.time(5).to_bytes(8, "little")
    file.write_bytes(packed(file.read_bytes(), body.replace(root.to_bytes(8, "little"), later)))
    with pytest.raises(FirnlineError) as told:
        opened(made).expire(made.time(4))
    assert isinstance(told.value, OutcomeUnknown)
    assert type(told.value.__cause__).__name__ == "PanicException"
    with pytest.raises(RefusedForSafety, match="younger than some that are to go"):
        attempt_at(made.writing(), step_from(made.version(), made.time(4)))


def test_a_library_that_is_too_old_for_the_repository(recorded: list[Path], tmp_path: Path) -> None:
    if LIBRARY >= (2, 0):
        pytest.skip(f"icechunk {icechunk.__version__} knows version 2")
    location = str(shutil.copytree(recorded[0], tmp_path / "r"))
    base = version_at(STORE, location)
    writing = IcechunkCommits(STORE, {}, location)
    threshold = max(each.flushed_us for each in base.document["repository"].snapshots.values())
    with pytest.raises(UnsupportedFormat, match="does not know version 2"):
        writing.commit(attempt_at(writing, step_from(base, threshold)))
    assert version_at(STORE, location) == base


def test_a_repository_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="does not read"):
        LibraryRepository.at(str(tmp_path / "none"), {})


@pytest.mark.parametrize("form", ["{}", "{}/", "file://{}", "file:{}", "file://localhost{}"])
def test_local_places(tmp_path: Path, form: str) -> None:
    folder = tmp_path / "with space%20and ü"
    made = stepped(folder, SPECS[-1])
    location = form.format(folder)
    assert LibraryRepository.at(location, {}).points_to(RefKind.BRANCH, MAIN) == made.snapshots[6]
    assert sorted(each.name for each in tmp_path.iterdir()) == [folder.name]


def test_places_that_the_library_is_not_asked_for() -> None:
    for location in ("gs://b/r", "abfs://c@a/r", "memory:///r"):
        with pytest.raises(UnsupportedFormat, match="local folders and in S3 only"):
            storage_at(location, {})


@pytest.mark.parametrize("name", ["s3.profile-name", "client.role-arn", "s3.role-arn", "s3.proxy-uri"])
def test_a_setting_that_the_library_has_no_word_for(name: str) -> None:
    with pytest.raises(RefusedForSafety, match="knows no setting"):
        storage_at("s3://b/r", {name: "x"})


def test_settings_in_the_words_of_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    plain = s3_words("s3a://b/lake/r/", {})
    assert (plain["bucket"], plain["prefix"], plain["from_env"]) == ("b", "lake/r", True)
    assert (plain["allow_http"], plain["force_path_style"], plain["endpoint_url"]) == (False, False, None)
    keys = {"s3.access-key-id": "a", "s3.secret-access-key": "b", "client.session-token": "c", "client.region": "eu"}
    told = s3_words("s3://b/r", {"s3.endpoint": "HTTP://h:1", **keys})
    assert told | {"allow_http": True, "force_path_style": True, "region": "eu"} == told
    assert (told["access_key_id"], told["secret_access_key"], told["session_token"]) == ("a", "b", "c")
    assert not s3_words("s3://b/r", {"s3.endpoint": "https://h", "s3.path-style-access": "false"})["force_path_style"]
    assert not s3_words("s3://b/r", {"s3.endpoint": "https://h"})["allow_http"]
    assert s3_words("s3://b/r", {"s3.force-virtual-addressing": "false"})["force_path_style"]
    assert s3_words("s3://b/r", {"s3.anonymous": "true", **keys}).get("access_key_id") is None
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://other:2")
    assert s3_words("s3://b/r", {})["endpoint_url"] == "http://other:2"


@pytest.mark.full
def test_a_server_that_does_not_answer() -> None:
    keys = {"s3.access-key-id": "a", "s3.secret-access-key": "very-secret"}
    with pytest.raises(StoreError, match="does not read") as told:
        LibraryRepository.at("s3://b/r", {"s3.endpoint": "http://127.0.0.1:9", **keys})
    assert "very-secret" not in str(told.value)


_SCRIPT = """
import sys
{before}
from firnline.formats.icechunk.committing.library import LibraryRepository
assert "icechunk" not in sys.modules or sys.modules["icechunk"] is None
try:
    LibraryRepository.at({location!r}, {{}}).expire(1)
except Exception as trouble:
    print(type(trouble).__name__, trouble, trouble.hint)
"""


def said_by(location: str, before: str = "") -> str:
    script = _SCRIPT.format(before=before, location=location)
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout


def test_the_library_is_missing(tmp_path: Path) -> None:
    told = said_by(str(tmp_path), "sys.modules['icechunk'] = None")
    assert told.startswith("UnsupportedFormat an icechunk repository is not changed here")
    assert "firnline[icechunk]" in told


def test_the_library_does_not_write_between_our_lines(tmp_path: Path) -> None:
    """It warns of local files on standard output, where a program reads our JSON."""
    made = stepped(tmp_path / "r", SPECS[-1])
    assert said_by(made.location) == ""


@pytest.mark.parametrize("spec", SPECS)
def test_names_of_versions(tmp_path: Path, spec: int) -> None:
    made = stepped(tmp_path / "r#1", spec)
    first = made.version()
    names = {first.location, version_name(made.read(), {"a": "1"})}
    assert made.version().location == first.location
    assert made.writing().commit(attempt_at(made.writing(), step_from(first, made.time(4)))) is SwapOutcome.DONE
    names.add(made.version().location)
    made.commits.commit(MAIN)
    names.add(made.version().location)
    made.repo.delete_tag("old")
    names.add(made.version().location)
    icechunk.Repository.open(storage(tmp_path / "r#1")).create_branch("old", made.snapshots[6])
    names.add(made.version().location)
    assert len(names) == 6
    assert {place_of(name)[0] for name in names} == {made.location}
    assert len({place_of(name)[1] for name in names}) == 6
    assert place_of(made.location) == (made.location, None)
