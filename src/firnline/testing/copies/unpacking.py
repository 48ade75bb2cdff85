"""The contract of a Copy that takes files out of bundles: damage of a bundle goes no further, and all of Copy's own."""

from __future__ import annotations

import io
import tarfile
from dataclasses import dataclass, field
from hashlib import sha256

import pytest

from firnline.model.locations import join
from firnline.ports.copying import Copy, CopyFate, CopyJob
from firnline.ports.packing import PackedFile
from firnline.testing.copies.contract import LARGE, CopyContract, flipped, some_bytes
from firnline.testing.stores import SideDoor


@dataclass(frozen=True, slots=True)
class KnownPlaces:
    """An index of bundles in memory."""

    places: dict[str, PackedFile] = field(default_factory=dict)

    def find(self, place: str) -> PackedFile | None:
        return self.places.get(place)


def bundled(name: str, data: bytes) -> tuple[bytes, int]:
    """Returns a bundle that Python's own writer made of a file and its neighbours, and where the file lies."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as tar:
        for member, content in (("before", b"b" * 700), (name, data), ("after", b"a" * 10)):
            info = tarfile.TarInfo(member)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    with tarfile.open(fileobj=io.BytesIO(whole.getvalue())) as tar:
        return whole.getvalue(), tar.getmembers()[1].offset_data


class UnpackContract(SideDoor):
    """What Copy must do with sources that lie in bundles. Bundles lie below `root`, copies below `cold`; `copier` takes
    what `known` says from bundles.
    """

    @pytest.fixture
    def cold(self) -> str:
        raise NotImplementedError("return the location of an empty folder that is not the sources'")

    @pytest.fixture
    def copier(self) -> Copy:
        raise NotImplementedError

    @pytest.fixture(autouse=True)
    def known(self) -> KnownPlaces:
        self.index = KnownPlaces()
        return self.index

    def filled(self, root: str, cold: str, name: str, data: bytes, *, told: bool = True) -> CopyJob:
        bundle, offset = bundled(name, data)
        place, key = join(root, name), join(root, "bundles", f"{len(self.index.places)}.tar")
        self.raw_put(key, bundle)
        checksum = f"sha256:{sha256(data).hexdigest()}"
        self.index.places[place] = PackedFile(place, len(data), checksum, key, offset, checksum)
        return CopyJob(place, join(cold, name), len(data) if told else None, "data")

    def nothing_at(self, key: str) -> bool:
        try:
            self.raw_get(key)
        except KeyError:
            return True
        return False

    @pytest.mark.parametrize("size", [100, LARGE])
    def test_a_damaged_member_gets_no_name(self, copier: Copy, root: str, cold: str, size: int) -> None:
        job = self.filled(root, cold, "x", some_bytes(size))
        packed = self.index.places[job.source]
        bundle = self.raw_get(packed.bundle)
        for at in (packed.offset, packed.offset + size - 1):
            self.raw_put(packed.bundle, flipped(bundle, at))
            (outcome,) = copier.copy([job])
            assert outcome.fate is CopyFate.FAILED
            assert "not what was packed" in outcome.error or "another process" in outcome.error
            assert self.nothing_at(job.target)
        self.raw_put(packed.bundle, flipped(bundle, 600))
        copier.copy([job])
        assert copier.copy([job])[0].fate is CopyFate.PRESENT
        assert self.raw_get(job.target) == some_bytes(size)

    def test_a_bundle_that_is_missing_or_torn_fails(self, copier: Copy, root: str, cold: str) -> None:
        job = self.filled(root, cold, "x", some_bytes(3_000))
        packed = self.index.places[job.source]
        torn = packed._replace(bundle=join(root, "torn"))
        self.raw_put(torn.bundle, self.raw_get(packed.bundle)[: packed.offset + 2_999])
        for wrong in (packed._replace(bundle=join(root, "missing")), torn, packed._replace(offset=packed.offset - 1)):
            self.index.places[job.source] = wrong
            (outcome,) = copier.copy([job])
            assert outcome.fate is CopyFate.FAILED
            assert outcome.error
            assert self.nothing_at(job.target)

    def test_what_lies_by_itself_is_copied_plainly(self, copier: Copy, root: str, cold: str) -> None:
        self.raw_put(join(root, "plain"), b"plain")
        jobs = [self.filled(root, cold, "x", b"packed"), CopyJob(join(root, "plain"), join(cold, "plain"), 5, "data")]
        assert [each.fate for each in copier.copy(jobs)] == [CopyFate.COPIED] * 2
        assert [self.raw_get(job.target) for job in jobs] == [b"packed", b"plain"]


class UnpackAsCopyContract(UnpackContract, CopyContract):
    """The whole contract of Copy, whose every source lies in a bundle."""
