"""The audit log: nothing is lost by many writers, and whatever is changed in it shows."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firnline.errors import AlreadyExists, AuditUnwritable, OutcomeUnknown, StoreError, UnreadableMetadata, UsageError
from firnline.journal.audit.appending import EMPTY, AuditLog, ChainEnd, find_end
from firnline.journal.audit.entries import PER_FOLDER, audit_root, key_of, number_in
from firnline.journal.audit.verifying import parse_end, read_entries, verify_log
from firnline.journal.events import UNSEALED, Sealing
from firnline.ports.observing.news import News
from firnline.stores.objects import ObjectStores
from harness.lanes import by_lane

STORE = ObjectStores({})
WHO = {"user": "ann", "host": "here", "process": "1"}
KEY = Sealing(b"a key of the operator", required=True)

APPENDS = """
import sys
from firnline.journal.audit.appending import AuditLog
from firnline.ports.observing.news import News
from firnline.stores.objects import ObjectStores
root, name, count = sys.argv[1:]
log = AuditLog(ObjectStores({}), root, {"user": name, "host": "here", "process": name})
print("begun", flush=True)
for each in range(int(count)):
    log.attest(News(f"{name}@{each}", "t", "expiry", None, "committing", each))
"""


def news(number: int) -> News:
    return News(f"t@{number}", "t", "expiry", "planned", "committing", number, {"files": number})


def filled(folder: Path, count: int, sealing: Sealing = UNSEALED) -> str:
    root = audit_root(str(folder))
    log = AuditLog(STORE, root, WHO, sealing)
    for each in range(1, count + 1):
        log.attest(news(each))
    return root


def writer(root: str, name: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", APPENDS, root, name, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_two_processes_lose_no_entry_of_each_other(tmp_path: Path) -> None:
    root, count = audit_root(str(tmp_path)), 200
    with writer(root, "ann", count) as ann, writer(root, "bob", count) as bob:
        assert (ann.wait(300), bob.wait(300)) == (0, 0)
    assert verify_log(STORE, root, UNSEALED).end.number == 2 * count
    said = list(read_entries(STORE, root))
    assert Counter(each.news["run"] for each in said) == {
        f"{name}@{n}": 1 for name in ("ann", "bob") for n in range(count)
    }
    of_ann = [each.news["run"] for each in said if each.who["user"] == "ann"]
    assert of_ann == [f"ann@{n}" for n in range(count)]


def test_a_killed_process_leaves_a_whole_chain_that_others_go_on_with(tmp_path: Path) -> None:
    root = audit_root(str(tmp_path))
    with writer(root, "ann", 100_000) as killed, writer(root, "bob", 60) as other:
        assert killed.stdout is not None
        killed.stdout.readline()
        time.sleep(0.3)
        killed.send_signal(signal.SIGKILL)
        assert killed.wait(60) == -signal.SIGKILL
        assert other.wait(300) == 0
    ended = verify_log(STORE, root, UNSEALED).end
    assert sum(each.who["user"] == "bob" for each in read_entries(STORE, root)) == 60
    AuditLog(STORE, root, WHO).attest(news(1))
    assert verify_log(STORE, root, UNSEALED, ended).end.number == ended.number + 1


def change(root: str, number: int, edit: Callable[[dict[str, object]], object]) -> None:
    path = Path(key_of(root, number))
    said = json.loads(path.read_bytes())
    edit(said)
    path.write_text(json.dumps(said, indent=1))


def swap(root: str, first: int, second: int) -> None:
    one, other = Path(key_of(root, first)), Path(key_of(root, second))
    data = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(data)


def insert(root: str, number: int) -> None:
    """Puts a copy of an entry after it, and gives all that follow the next number."""
    for each in range(9, number, -1):
        shutil.copy(key_of(root, each), key_of(root, each + 1))
        change(root, each + 1, lambda said, to=each + 1: said.update(number=to))
    shutil.copy(key_of(root, number), key_of(root, number + 1))
    change(root, number + 1, lambda said: said.update(number=number + 1))


@dataclass(frozen=True)
class Harm:
    do: Callable[[str], object]
    told: str


HARMS = {
    "changed": Harm(
        lambda root: change(root, 4, lambda said: said.update(who={**WHO, "user": "eve"})), r"entry (4|5)\b"
    ),
    "removed": Harm(lambda root: Path(key_of(root, 4)).unlink(), "entry 4 is missing"),
    "first removed": Harm(lambda root: Path(key_of(root, 1)).unlink(), "entry 1 is missing"),
    "swapped": Harm(lambda root: swap(root, 3, 6), "entry 3 is entry 6"),
    "inserted": Harm(lambda root: insert(root, 4), "entry 5"),
    "doubled": Harm(lambda root: shutil.copy(key_of(root, 4), key_of(root, 4).replace("04.json", "04b.json")), "04b"),
    "in another folder": Harm(
        lambda root: shutil.copytree(Path(key_of(root, 4)).parent, Path(root) / "000001"), "000001/000000001.json"
    ),
    "torn": Harm(lambda root: Path(key_of(root, 4)).write_bytes(b'{"version"'), "000000004.json is damaged"),
    "renumbered": Harm(lambda root: change(root, 9, lambda said: said.update(number=8)), "entry 9 is entry 8"),
}


@pytest.mark.parametrize("harm", HARMS.values(), ids=HARMS)
@pytest.mark.parametrize("sealing", [UNSEALED, KEY], ids=["plain", "sealed"])
def test_the_first_entry_that_is_not_as_it_was_written_is_named(tmp_path: Path, harm: Harm, sealing: Sealing) -> None:
    root = filled(tmp_path, 9, sealing)
    verify_log(STORE, root, sealing)
    harm.do(root)
    with pytest.raises(UnreadableMetadata) as broken:
        verify_log(STORE, root, sealing)
    assert re.search(harm.told, broken.value.message), broken.value.message
    assert broken.value.exit_code == 14


@settings(max_examples=by_lane(25, 25, 600), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(number=st.integers(1, 9), at=st.floats(0, 1, exclude_max=True), new=st.binary(min_size=1, max_size=3))
def test_any_other_byte_in_any_sealed_entry_shows(tmp_path: Path, number: int, at: float, new: bytes) -> None:
    """Without a key, that is so for all entries except the last one: nothing stands after it."""
    for sealing, last in ((KEY, 9), (UNSEALED, 8)):
        shutil.rmtree(tmp_path, ignore_errors=True)
        root = filled(tmp_path, 9, sealing)
        path = Path(key_of(root, number))
        old = path.read_bytes()
        start = int(at * len(old))
        path.write_bytes(old[:start] + new + old[start + len(new) :])
        if number > last or path.read_bytes() == old:
            continue
        if number == last and json_equal(old, path.read_bytes()):
            continue  # another spelling of the same entry
        with pytest.raises(UnreadableMetadata):
            verify_log(STORE, root, sealing)


def json_equal(old: bytes, new: bytes) -> bool:
    try:
        return bool(json.loads(old) == json.loads(new))
    except ValueError:
        return False


def test_a_cut_end_shows_only_against_an_end_that_was_noted(tmp_path: Path) -> None:
    root = filled(tmp_path, 9, KEY)
    noted = verify_log(STORE, root, KEY).end
    Path(key_of(root, 9)).unlink()
    assert verify_log(STORE, root, KEY).end.number == 8  # a chain cannot tell that it was longer
    with pytest.raises(UnreadableMetadata, match="ends with entry 8, and had 9"):
        verify_log(STORE, root, KEY, noted)
    AuditLog(STORE, root, WHO, KEY).attest(news(10))  # one that has the key goes on, and hides the cut from the count
    with pytest.raises(UnreadableMetadata, match="another one than was noted"):
        verify_log(STORE, root, KEY, noted)


def test_a_log_that_was_written_again_shows_by_the_key_or_by_a_noted_end(tmp_path: Path) -> None:
    root = filled(tmp_path, 3, KEY)
    noted = verify_log(STORE, root, KEY).end
    shutil.rmtree(root)
    filled(tmp_path, 3)
    assert verify_log(STORE, root, UNSEALED).end.number == 3
    with pytest.raises(UnreadableMetadata, match="no entry"):
        verify_log(STORE, root, KEY)
    with pytest.raises(UnreadableMetadata, match="another one"):
        verify_log(STORE, root, UNSEALED, noted)


def test_entries_from_before_there_was_a_key_are_proven_by_the_first_sealed_one(tmp_path: Path) -> None:
    root = filled(tmp_path, 3)
    filled(tmp_path, 2, KEY)
    assert verify_log(STORE, root, KEY).sealed_from == 4
    filled(tmp_path, 1)
    with pytest.raises(UnreadableMetadata, match="entry 6 is not sealed"):
        verify_log(STORE, root, KEY)
    with pytest.raises(UnreadableMetadata, match="entry 4 is not sealed"):
        verify_log(STORE, root, Sealing(b"another key", required=True))


@settings(max_examples=by_lane(15, 15, 300), deadline=None)
@given(count=st.integers(0, 9 * PER_FOLDER))
def test_the_end_is_found_wherever_it_is(count: int) -> None:
    found = find_end(_Numbers(count), "r")
    assert found == (EMPTY if count == 0 else ChainEnd(count, found.hash))


class _Numbers:
    """A log of so many entries, none of which takes any room."""

    def __init__(self, count: int) -> None:
        from firnline.ports.stores import ObjectMeta

        self.keys = {key_of("r", number): ObjectMeta(key_of("r", number), 1) for number in range(1, count + 1)}

    def head(self, key: str) -> object:
        from firnline.errors import ObjectNotFound

        if key not in self.keys:
            raise ObjectNotFound(key)
        return self.keys[key]

    def list(self, folder: str) -> object:
        return iter([meta for key, meta in self.keys.items() if key.startswith(f"{folder}/")])

    def get(self, key: str) -> bytes:
        return key.encode()


def test_folders_are_crossed(tmp_path: Path) -> None:
    root = audit_root(str(tmp_path))
    log = AuditLog(STORE, root, WHO, last=ChainEnd(PER_FOLDER - 1, "x"))
    log.attest(news(1))
    log.attest(news(2))
    assert sorted(path.name for path in Path(root).iterdir()) == ["000000", "000001"]
    other = AuditLog(STORE, root, WHO, last=ChainEnd(PER_FOLDER - 1, "x"))
    assert other.append(news(3).to_json()).number == PER_FOLDER + 2


class _LosesAnswers:
    """Writes, and then says that nobody knows; or that the object was there already."""

    def __init__(self, answers: list[StoreError | None]) -> None:
        self.answers, self.get, self.head, self.list = answers, STORE.get, STORE.head, STORE.list

    def put_if_absent(self, key: str, data: bytes) -> None:
        STORE.put_if_absent(key, data)
        answer = self.answers.pop(0)
        if answer is not None:
            raise answer


def test_a_lost_answer_makes_no_second_entry(tmp_path: Path) -> None:
    store = _LosesAnswers([OutcomeUnknown("silence"), AlreadyExists("it is there"), None])
    log = AuditLog(store, audit_root(str(tmp_path)), WHO)
    for each in range(3):
        log.attest(news(each))
    assert verify_log(STORE, log.root, UNSEALED).end.number == 3


def test_a_log_that_cannot_be_written_refuses(tmp_path: Path) -> None:
    (tmp_path / "_firnline").write_text("")
    with pytest.raises(AuditUnwritable, match="cannot be written"):
        AuditLog(STORE, audit_root(str(tmp_path)), WHO).attest(news(1))


def test_names_that_no_entry_has() -> None:
    assert number_in("r/000000/000000001.json") == 1
    assert number_in("r/000001/000001001.json") == 1_001
    for wrong in ("r/000001/000000001.json", "r/000000/000000000.json", "r/000000/1.json", "r/000000/000000001.txt"):
        assert number_in(wrong) is None


@pytest.mark.parametrize("text", ["", "3", "x:" + "0" * 64, "3:abc"])
def test_what_is_no_end_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_end(text)
