"""Local files keep the store's contract, and what only local files can get wrong."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import ClassVar

import pytest

from firnline.errors import AlreadyExists, ObjectNotFound, StoreError
from firnline.policy.limits import StoreLimits
from firnline.policy.parse import parse_policy
from firnline.ports.delete import Doomed, Fate
from firnline.ports.stores import ReadWrite
from firnline.stores import local
from firnline.stores.delete import ObjectDelete
from firnline.stores.objects import ObjectStores
from firnline.stores.throttle import Lanes, Throttle
from firnline.stores.wrappers.paced import Paced
from firnline.stores.wrappers.read_only import ReadOnly
from firnline.stores.wrappers.retry import Retrying
from firnline.testing.counting import Counting, CountingLog
from firnline.testing.deletes import DeleteContract
from firnline.testing.stores import (
    AWKWARD_NAMES,
    ReadContract,
    SharedStoreContract,
    SideDoor,
    StoreContract,
)
from harness.disks import no_file_above


class OnDisk(SideDoor):
    awkward: ClassVar[tuple[str, ...]] = (*AWKWARD_NAMES, "tab\tnewline\n", "bell\x07")

    @pytest.fixture
    def root(self, tmp_path: Path) -> str:
        return str(tmp_path / "lake")

    def raw_put(self, key: str, data: bytes) -> None:
        path = Path(key.removeprefix("file://"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def raw_get(self, key: str) -> bytes:
        try:
            return Path(key.removeprefix("file://")).read_bytes()
        except (FileNotFoundError, NotADirectoryError) as error:
            raise KeyError(key) from error

    def etag(self, key: str) -> str:
        return ObjectStores().head(key).etag or ""


class TestBarePaths(OnDisk, SharedStoreContract):
    @pytest.fixture
    def store(self) -> ReadWrite:
        return ObjectStores()


class TestFileUris(OnDisk, StoreContract):
    @pytest.fixture
    def root(self, tmp_path: Path) -> str:
        return f"file://{tmp_path}/lake"

    @pytest.fixture
    def store(self) -> ReadWrite:
        return ObjectStores()


class TestRetrying(OnDisk, StoreContract):
    @pytest.fixture
    def store(self) -> ReadWrite:
        return Retrying(ObjectStores())


def one_by_one() -> Throttle:
    """Returns what lets one read and one delete be under way, anywhere on this machine."""
    said = "stores: {/: {reads-at-once: 1, reads-per-second: 100000, deletes-at-once: 1, deletes-per-second: 100000}}"
    return Throttle(Lanes(StoreLimits.of(parse_policy(said).stores)))


class TestPaced(OnDisk, SharedStoreContract):
    @pytest.fixture
    def store(self) -> ReadWrite:
        return Retrying(Paced(ObjectStores(), one_by_one()))


class TestPacedDelete(OnDisk, DeleteContract):
    @pytest.fixture
    def deleter(self) -> ObjectDelete:
        return ObjectDelete(throttle=one_by_one())


class TestCounting(OnDisk, StoreContract):
    travels = False

    @pytest.fixture
    def store(self) -> ReadWrite:
        return Counting(ObjectStores())


class TestCountingLog(OnDisk, StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> ReadWrite:
        return CountingLog(ObjectStores(), str(tmp_path / "calls.log"))


class TestReadOnly(OnDisk, ReadContract):
    @pytest.fixture
    def store(self) -> ReadOnly:
        return ReadOnly(ObjectStores())


class TestObjectDelete(OnDisk, DeleteContract):
    @pytest.fixture
    def deleter(self) -> ObjectDelete:
        return ObjectDelete()


def test_a_doubled_slash_is_one_slash_on_disk_and_comes_back_as_spelled(tmp_path: Path) -> None:
    store = ObjectStores()
    store.put(f"{tmp_path}//t//x", b"x")
    assert store.get(f"file:///{tmp_path}/t/x") == b"x"
    assert [found.key for found in store.list(f"{tmp_path}//t")] == [f"{tmp_path}//t/x"]
    assert ObjectDelete().delete([Doomed(f"{tmp_path}/t//x")])[0].fate is Fate.DELETED


@pytest.mark.parametrize("prefix", ["", "file:", "file://", "file://localhost"])
def test_a_listing_keeps_the_spelling_of_its_folder(tmp_path: Path, prefix: str) -> None:
    store = ObjectStores()
    store.put(f"{tmp_path}/t/day=a%20b/x", b"x")
    key = f"{prefix}{tmp_path}/t/day=a%20b/x"
    assert [found.key for found in store.list(f"{prefix}{tmp_path}/t")] == [key]
    assert store.get(key) == b"x"


def test_a_file_of_another_host_is_refused() -> None:
    with pytest.raises(StoreError, match="host 'elsewhere'"):
        ObjectStores().get("file://elsewhere/x")


def test_links_to_folders_are_not_followed_and_links_to_files_are_files(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    (lake / "data").mkdir(parents=True)
    (lake / "data/x").write_bytes(b"12345")
    (lake / "loop").symlink_to(lake)
    (lake / "alias").symlink_to(lake / "data")
    (lake / "link").symlink_to(lake / "data/x")
    (lake / "dangling").symlink_to(lake / "nowhere")
    (lake / "self").symlink_to(lake / "self")
    found = {meta.key.removeprefix(f"{lake}/"): meta.size for meta in ObjectStores().list(str(lake))}
    assert found.pop("data/x") == found.pop("link") == 5
    assert set(found) == {"dangling", "self"}
    told = {link.removeprefix(f"{lake}/") for link in ObjectStores().links(str(lake))}
    assert told == {"loop", "alias", "link", "dangling", "self"}


def test_a_link_is_not_deleted(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "x").write_bytes(b"x")
    (tmp_path / "to-file").symlink_to(tmp_path / "x")
    (tmp_path / "to-folder").symlink_to(tmp_path / "folder")
    outcomes = ObjectDelete().delete([Doomed(f"{tmp_path}/to-file"), Doomed(f"{tmp_path}/to-folder")])
    assert [outcome.fate for outcome in outcomes] == [Fate.CHANGED, Fate.CHANGED]
    assert "link" in outcomes[0].error
    assert sorted(os.listdir(tmp_path)) == ["folder", "to-file", "to-folder", "x"]


def test_parents_of_a_deleted_file_stay(tmp_path: Path) -> None:
    ObjectStores().put(f"{tmp_path}/a/b/x", b"x")
    ObjectDelete().delete([Doomed(f"{tmp_path}/a/b/x")])
    assert (tmp_path / "a/b").is_dir()


def test_only_exactly_named_unfinished_writes_are_left_out(tmp_path: Path) -> None:
    unfinished = ".firnline-tmp-" + "0af" * 10 + "00"
    for name in (unfinished, unfinished + "x", ".firnline-tmp-", unfinished[1:], ".firnline-tmp-" + "g" * 32):
        (tmp_path / name).write_bytes(b"x")
    listed = {os.path.basename(found.key) for found in ObjectStores().list(str(tmp_path))}
    assert listed == set(os.listdir(tmp_path)) - {unfinished}


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(StoreError, match="folder"):
        ObjectStores().put(f"{tmp_path}/folder", b"x")
    with pytest.raises(AlreadyExists):
        ObjectStores().put_if_absent(f"{tmp_path}/folder", b"x")
    (tmp_path / "file").write_bytes(b"kept")
    with pytest.raises(StoreError) as failed:
        ObjectStores().put(f"{tmp_path}/file/below", b"x")
    assert not isinstance(failed.value, ObjectNotFound)
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]
    assert os.listdir(tmp_path / "folder") == []


def test_what_a_full_disk_did_not_take_is_certainly_not_there(tmp_path: Path) -> None:
    """An outcome that nobody knows would have a command say that of a commit, and leave its lease to run out."""
    key, store = str(tmp_path / "new" / "claim"), Retrying(ObjectStores())
    with no_file_above(10), pytest.raises(StoreError, match="cannot be written: File too large") as refused:
        store.put_if_absent(key, b"more than there is room for")
    assert "make room" in refused.value.hint
    store.put_if_absent(key, b"later")


def test_a_full_disk_that_took_the_name_is_asked_what_became_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file has its name, and what is to make that durable fails: then it must be read back."""

    def full(folder: str) -> None:
        monkeypatch.undo()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(local, "_sync_folder", full)
    Retrying(ObjectStores()).put_if_absent(str(tmp_path / "claim"), b"mine")
    assert (tmp_path / "claim").read_bytes() == b"mine"


def test_a_name_that_is_not_utf8_stops_the_listing(tmp_path: Path) -> None:
    with open(os.path.join(os.fsencode(tmp_path), b"bad\xff"), "wb"):
        pass
    with pytest.raises(StoreError, match="not UTF-8"):
        list(ObjectStores().list(str(tmp_path)))


def test_a_folder_that_cannot_be_read_stops_the_listing() -> None:
    with tempfile.TemporaryDirectory() as lake:
        os.chmod(lake, 0o755)
        Path(lake, "a").mkdir()
        Path(lake, "b").mkdir(mode=0o700)
        Path(lake, "b/x").touch()
        Path(lake, "b").chmod(0)
        listing = subprocess.run(
            [sys.executable, "-c", _LIST_AS_NOBODY, lake], capture_output=True, text=True, check=False
        )
        Path(lake, "b").chmod(0o700)
    assert listing.stdout.strip() == f"cannot list '{lake}/b/': Permission denied", listing.stderr


_LIST_AS_NOBODY = """
import os, sys
from firnline.errors import StoreError
from firnline.stores.objects import ObjectStores
if os.getuid() == 0:
    os.setuid(65534)
try:
    print(list(ObjectStores().list(sys.argv[1])))
except StoreError as error:
    print(error)
"""
