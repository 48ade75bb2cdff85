"""Tables known by their path: the newest metadata is found, or refused where two may be meant."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from firnline.catalogs.paths import PathCommits, PathTables, locate_path_table
from firnline.errors import NoSuchTable, RefusedForSafety, StoreError, UnreadableMetadata
from firnline.ports.catalogs import Catalog, Commit, Step, SwapOutcome, TableName, Version
from firnline.ports.stores import ObjectMeta
from firnline.stores.objects import ObjectStores
from firnline.stores.wrappers.read_only import ReadOnly
from firnline.testing.catalogs import CatalogContract

from .lakes import two_snapshots


def make_table(folder: Path, *names: str, hint: str | None = None) -> str:
    """Returns the location of a table folder that holds these metadata files."""
    (folder / "metadata").mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / "metadata" / name).write_bytes(b"{}")
    if hint is not None:
        (folder / "metadata" / "version-hint.text").write_text(hint)
    return str(folder)


def located(location: str) -> str:
    found = locate_path_table(location, ReadOnly(ObjectStores()))
    return found.removeprefix(f"{location}/metadata/")


class TestPathTables(CatalogContract):
    enumerates = False

    @pytest.fixture
    def catalog(self, tmp_path: Path) -> Catalog:
        self.folder = tmp_path
        make_table(tmp_path / "t", hint="1")
        (tmp_path / "t/metadata/v1.metadata.json").write_text(json.dumps(two_snapshots(f"{tmp_path}/t")))
        return PathTables(ReadOnly(ObjectStores()))

    @pytest.fixture
    def commits(self) -> Commit:
        return PathCommits(ObjectStores())

    @pytest.fixture
    def table(self, tmp_path: Path) -> TableName:
        return TableName.at(f"{tmp_path}/t")

    @pytest.fixture
    def absent(self, tmp_path: Path) -> TableName:
        return TableName.at(f"{tmp_path}/none")

    def contents(self, catalog: Catalog) -> object:
        return {str(path): path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}


V = "v{}.metadata.json".format


@pytest.mark.parametrize(
    ("names", "hint", "current"),
    [
        ([V(1), V(2), V(3)], "3", V(3)),
        ([V(1), V(2), V(3)], "2\n", V(3)),
        ([V(1), V(2), V(3)], None, V(3)),
        ([V(1), V(2), V(3)], "", V(3)),
        ([V(1), V(2), V(3)], "three", V(3)),
        ([V(9), V(10)], "9", V(10)),
        ([V(9), V(10)], "2", V(10)),
        ([V(1), V(5), V(6)], "5", V(6)),
        ([V(1), V(5), V(6)], None, V(6)),
        ([V(1), "v2.gz.metadata.json"], "1", "v2.gz.metadata.json"),
        ([V(1), "v2.metadata.json.gz"], None, "v2.metadata.json.gz"),
        ([V(1), "v1.gz.metadata.json", V(2)], "1", V(2)),
        (["00000-a.metadata.json", "00001-b.metadata.json"], None, "00001-b.metadata.json"),
        (["9-a.metadata.json", "00010-b.gz.metadata.json"], None, "00010-b.gz.metadata.json"),
        (["00000-a.metadata.json", "00010-b.metadata.json.gz"], "junk", "00010-b.metadata.json.gz"),
    ],
)
def test_the_newest_metadata_is_found(tmp_path: Path, names: list[str], hint: str | None, current: str) -> None:
    table = make_table(tmp_path / "t", *names, "snap-1-x.avro", "v9x.metadata.json", "stats.puffin", hint=hint)
    make_table(tmp_path / "t/metadata", V(77))
    assert located(table) == current


@pytest.mark.parametrize(
    ("names", "hint", "named"),
    [
        ([V(1), V(2), V(7)], "1", ["3", "7"]),
        ([V(1), V(2)], "9", ["9"]),
        ([], "4", ["4"]),
        ([V(1), V(2), "v2.gz.metadata.json"], "2", [V(2), "v2.gz.metadata.json"]),
        (["00003-a.metadata.json", "00003-b.metadata.json"], None, ["00003-a", "00003-b"]),
        ([V(3), "00009-b.metadata.json"], "3", [V(3), "00009-b"]),
    ],
)
def test_what_is_ambiguous_is_refused_by_name(
    tmp_path: Path, names: list[str], hint: str | None, named: list[str]
) -> None:
    table = make_table(tmp_path / "t", *names, hint=hint)
    with pytest.raises(UnreadableMetadata) as refused:
        located(table)
    for part in (table, *named):
        assert part in refused.value.message


@pytest.mark.parametrize("names", [[], ["snap-1.avro"]])
def test_a_folder_without_metadata_is_no_table(tmp_path: Path, names: list[str]) -> None:
    with pytest.raises(NoSuchTable):
        located(make_table(tmp_path / "t", *names))
    with pytest.raises(NoSuchTable):
        located(str(tmp_path / "none"))


@pytest.mark.parametrize("name", [V(1), "00001-x.gz.metadata.json", "v1.metadata.json.gz"])
def test_a_metadata_file_is_taken_at_its_word(tmp_path: Path, name: str) -> None:
    table = make_table(tmp_path / "t", V(1), V(2))
    file = f"{table}/metadata/{name}"
    assert locate_path_table(file, ObjectStores()) == file
    with pytest.raises(RefusedForSafety, match="metadata file"):
        PathCommits(ObjectStores()).prepare(TableName.at(file), step(file))


def test_the_spelling_of_the_location_stays(tmp_path: Path) -> None:
    make_table(tmp_path / "t", V(1))
    for prefix in ("", "file:", "file://"):
        location = f"{prefix}{tmp_path}/t"
        assert locate_path_table(location + "/", ObjectStores()) == f"{location}/metadata/{V(1)}"


def step(base: str, suggested: str = "x.metadata.json", data: bytes = b"{}") -> Step:
    return Step(Version(base, {}), {}, data, suggested)


def commit(location: str, base: str, suggested: str = "x.metadata.json") -> SwapOutcome:
    """Returns the outcome of one commit after the version file `base`."""
    commits, name = PathCommits(ObjectStores()), TableName.at(location)
    return commits.commit(commits.prepare(name, step(f"{location}/metadata/{base}", suggested)))


def test_a_commit_writes_the_next_version_and_the_hint(tmp_path: Path) -> None:
    table = make_table(tmp_path / "t", V(9), hint="9")
    assert commit(table, V(9)) is SwapOutcome.DONE
    assert located(table) == V(10)
    assert (tmp_path / "t/metadata/version-hint.text").read_text() == "10"
    assert commit(f"file://{table}", V(10), "x.gz.metadata.json") is SwapOutcome.DONE
    assert located(table) == "v11.gz.metadata.json"
    assert commit(table, "v11.gz.metadata.json") is SwapOutcome.DONE


def test_a_table_a_catalog_wrote_cannot_be_committed_by_path(tmp_path: Path) -> None:
    table = make_table(tmp_path / "t", "00001-a.metadata.json")
    with pytest.raises(RefusedForSafety, match="catalog"):
        commit(table, "00001-a.metadata.json")


def test_a_version_under_its_other_name_is_a_lost_race(tmp_path: Path) -> None:
    """The other name appears after the current version was looked up."""
    table = make_table(tmp_path / "t", V(1))

    class Late(ObjectStores):
        def head(self, key: str) -> ObjectMeta:
            make_table(tmp_path / "t", "v2.gz.metadata.json")
            return super().head(key)

    commits = PathCommits(Late())
    attempt = commits.prepare(TableName.at(table), step(f"{table}/metadata/{V(1)}"))
    assert commits.commit(attempt) is SwapOutcome.LOST
    assert located(table) == "v2.gz.metadata.json"


def test_object_stores_are_refused_with_the_reason() -> None:
    with pytest.raises(RefusedForSafety, match="overwrites"):
        commit("s3://bucket/t", V(1))


class OtherCompression(ObjectStores):
    """Real files, among which another writer commits the same version under its gzip name at the same moment."""

    def put_if_absent(self, key: str, data: bytes) -> None:
        super().put_if_absent(key, data)
        super().put(key.replace(".metadata", ".gz.metadata"), b"theirs")


class LostAnswer(ObjectStores):
    """Real files behind a line that breaks after the write."""

    def put_if_absent(self, key: str, data: bytes) -> None:
        super().put_if_absent(key, data)
        raise StoreError("connection reset")


class NoHint(ObjectStores):
    def put(self, key: str, data: bytes) -> None:
        raise StoreError("disk full")


@pytest.mark.parametrize(
    ("store", "outcome"),
    [
        (OtherCompression(), SwapOutcome.UNKNOWN),
        (LostAnswer(), SwapOutcome.UNKNOWN),
        (NoHint(), SwapOutcome.DONE),
    ],
)
def test_what_is_not_sure_is_unknown(tmp_path: Path, store: ObjectStores, outcome: SwapOutcome) -> None:
    table = make_table(tmp_path / "t", V(1), hint="1")
    commits = PathCommits(store)
    attempt = commits.prepare(TableName.at(table), step(f"{table}/metadata/{V(1)}", data=b"mine"))
    assert commits.commit(attempt) is outcome
    assert (tmp_path / "t/metadata" / V(2)).read_bytes() == b"mine"


def test_whoever_reads_a_commit_back_puts_the_hint_right(tmp_path: Path) -> None:
    table = make_table(tmp_path / "t", V(1), hint="1")
    died = PathCommits(NoHint())
    attempt = died.prepare(TableName.at(table), step(f"{table}/metadata/{V(1)}", data=b"mine"))
    assert died.commit(attempt) is SwapOutcome.DONE
    now = Version(f"{table}/metadata/{V(2)}", {})
    assert PathCommits(ObjectStores()).landed(attempt.proof, now)
    assert (tmp_path / "t/metadata/version-hint.text").read_text() == "2"


def test_a_hint_that_is_ahead_of_what_was_read_stays(tmp_path: Path) -> None:
    """Another writer commits between the read and the look at the hint."""
    table = make_table(tmp_path / "t", V(1), V(2), V(3), hint="3")
    (tmp_path / "t/metadata" / V(2)).write_bytes(b"mine")
    commits = PathCommits(ObjectStores())
    attempt = commits.prepare(TableName.at(table), step(f"{table}/metadata/{V(1)}", data=b"mine"))
    assert commits.landed(attempt.proof, Version(f"{table}/metadata/{V(2)}", {}))
    assert (tmp_path / "t/metadata/version-hint.text").read_text() == "3"


@pytest.mark.parametrize(
    ("hint", "passed"),
    [("2", [V(2), "v3.gz.metadata.json"]), ("4", []), (None, []), ("two", []), ("1", []), ("9", [])],
)
def test_the_versions_that_a_reader_passes(tmp_path: Path, hint: str | None, passed: list[str]) -> None:
    table = make_table(tmp_path / "t", V(2), "v3.gz.metadata.json", V(4), V(5), hint=hint)
    found = PathTables(ReadOnly(ObjectStores())).passed(TableName.at(table), f"{table}/metadata/{V(4)}")
    assert list(found) == [f"{table}/metadata/{each}" for each in passed]
