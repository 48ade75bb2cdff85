"""What only files have: a process that dies in the middle, a disk that returns other bytes, memory of this machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from stat import S_ISREG

import pytest

from firnline.ports.copying import CopyFate, CopyJob
from firnline.stores.copies.copying import ObjectCopy
from firnline.stores.copies.verifying import ObjectVerify
from firnline.stores.objects import ObjectStores
from firnline.testing.copies.contract import stored
from harness.servers.fixtures import Bucket

MIB = 1 << 20
FULL = bool(os.environ.get("FIRNLINE_FULL"))
WAYS = ("files to files", "files to a bucket", "a bucket to files", "bucket to bucket")

SLOWLY = """
import sys
from firnline.policy.limits import StoreLimits
from firnline.policy.parse import parse_policy
from firnline.ports.copying import CopyJob
from firnline.stores.copies.copying import ObjectCopy
from firnline.stores.throttle import Lanes, Throttle
source, target = sys.argv[1:]
slow = Throttle(Lanes(StoreLimits.of(parse_policy("stores: {/: {reads-per-second: 4}}").stores)))
print(ObjectCopy(source_throttle=slow).copy([CopyJob(source, target, None, "data")]))
"""

MEASURED = """
import json, resource, sys
from firnline.ports.copying import CopyJob
from firnline.stores.copies.copying import ObjectCopy
from firnline.stores.copies.verifying import ObjectVerify
from firnline.testing.copies.contract import stored
live, cold, small, large, target = json.loads(sys.argv[1])

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

copy, look = ObjectCopy(live, cold), ObjectVerify(cold)
def through(source, name):
    outcome, = copy.copy([CopyJob(source, target + name, None, "data")])
    again, = copy.copy([CopyJob(source, target + name, None, "data")])
    looked, = look.verify([stored(outcome)])
    return outcome.fate, again.fate, looked.fate

through(small, "small")
before = peak()
fates = through(large, "large")
print(json.dumps([fates, peak() - before]))
"""


def sparse(path: Path, size: int) -> Path:
    """Makes a large file whose bytes are not all alike, without the time to write them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for at in range(0, size, 7 * MIB):
            file.seek(at)
            file.write(b"%d" % at)
        file.truncate(size)
    return path


def half_written(folder: Path) -> list[Path]:
    return [each for each in folder.glob(".firnline-tmp-*") if each.stat().st_size]


def test_a_process_that_is_killed_half_way_leaves_nothing_under_the_name(tmp_path: Path) -> None:
    source, target = sparse(tmp_path / "live/x", 160 * MIB), tmp_path / "cold/x"
    killed = subprocess.Popen([sys.executable, "-c", SLOWLY, str(source), str(target)], stdout=subprocess.PIPE)
    until = time.monotonic() + 60
    while not half_written(target.parent):
        assert time.monotonic() < until
        assert killed.poll() is None
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    said, _ = killed.communicate()
    assert (said, killed.returncode) == (b"", -signal.SIGKILL)
    assert 0 < half_written(target.parent)[0].stat().st_size < 160 * MIB
    assert not target.exists()
    assert list(ObjectStores().list(str(target.parent))) == []
    (outcome,) = ObjectCopy().copy([CopyJob(str(source), str(target), 160 * MIB, "data")])
    assert outcome.fate is CopyFate.COPIED
    assert [each.key for each in ObjectStores().list(str(target.parent))] == [str(target)]
    assert ObjectVerify().verify([stored(outcome)])[0].fate is CopyFate.PRESENT


def test_a_disk_that_returns_other_bytes_is_found_before_the_name_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x").write_bytes(b"as it was read")
    really = os.fsync

    def damages(handle: int) -> None:
        if S_ISREG(os.fstat(handle).st_mode):
            os.pwrite(handle, b"A", 0)
        really(handle)

    monkeypatch.setattr("firnline.stores.local.os.fsync", damages)
    (outcome,) = ObjectCopy().copy([CopyJob(str(tmp_path / "x"), str(tmp_path / "cold/x"), 14, "data")])
    assert outcome.fate is CopyFate.FAILED
    assert "the disk returns other bytes" in outcome.error
    assert list((tmp_path / "cold").iterdir()) == []


def test_a_source_that_shrinks_while_it_is_read_is_no_copy(tmp_path: Path) -> None:
    source, target = sparse(tmp_path / "x", 40 * MIB), tmp_path / "cold/x"

    def shrinks() -> None:
        os.truncate(source, 9 * MIB)

    (outcome,) = ObjectCopy().copy([CopyJob(str(source), str(target), 40 * MIB, "data")], shrinks)
    assert outcome.fate is CopyFate.FAILED
    assert f"{40 * MIB:,}" in outcome.error
    assert list(target.parent.iterdir()) == []


@pytest.mark.parametrize("way", WAYS if FULL else WAYS[:1])
def test_memory_does_not_grow_with_the_file(tmp_path: Path, versitygw_bucket: Bucket, way: str) -> None:
    large_size = (300 if FULL else 120) * MIB
    small, large = sparse(tmp_path / "small", 20 * MIB), sparse(tmp_path / "large", large_size)
    bucket, settings = versitygw_bucket.uri, versitygw_bucket.server.settings
    at = {"small": str(small), "large": str(large)}
    if way.startswith(("a bucket", "bucket")):
        jobs = [CopyJob(path, f"{bucket}/live/{name}", None, "data") for name, path in at.items()]
        assert {each.fate for each in ObjectCopy({}, settings).copy(jobs)} == {CopyFate.COPIED}
        at = {job.target.rpartition("/")[2]: job.target for job in jobs}
    to_files = way.endswith("files")
    target = f"{tmp_path}/cold/" if to_files else f"{bucket}/cold/"
    other_way = {**settings, "s3.connect-timeout": "6"}
    said = json.dumps([settings, other_way, at["small"], at["large"], target])
    done = subprocess.run([sys.executable, "-c", MEASURED, said], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    fates, grown = json.loads(done.stdout)
    assert fates == ["copied", "present", "present"]
    assert grown < 60 * MIB, f"{grown / MIB:.0f} MiB"
