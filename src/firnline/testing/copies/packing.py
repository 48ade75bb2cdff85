"""The contract of Pack and GetPacked: every bundle is whole, any tar reads it, and each member comes out by itself."""

from __future__ import annotations

import io
import pickle
import tarfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from typing import ClassVar

import pytest

from firnline.errors import LeaseHeld, NoSuchBucket, ObjectNotFound, StoreError, UnreadableMetadata
from firnline.model.files import FileKind
from firnline.model.locations import join
from firnline.ports.copying import CopyFate, CopyJob, Stored, Verify
from firnline.ports.packing import BundleJob, BundleOutcome, GetPacked, Pack, PackMany
from firnline.testing.copies.contract import LARGE, flipped, some_bytes
from firnline.testing.stores import SideDoor

MARK = b"rewritten: "
DAMAGED = b"damaged"
EDGES = (0, 1, 511, 512, 513, 1024)
"""Sizes around those of a block."""


@dataclass(frozen=True, slots=True)
class MarkingRelocation:
    """Rewrites position deletes by a mark in front; what begins with DAMAGED cannot be read."""

    order: tuple[tuple[FileKind, ...], ...] = ((FileKind.DATA,), (FileKind.POSITION_DELETES,))
    rewritten: frozenset[FileKind] = frozenset({FileKind.POSITION_DELETES})

    @property
    def leaves(self) -> frozenset[FileKind]:
        return frozenset(kind for group in self.order for kind in group)

    def relocated(self, kind: FileKind, key: str, data: bytes) -> bytes:
        if data.startswith(DAMAGED):
            raise UnreadableMetadata(f"{key} is damaged")
        return MARK + data

    def same(self, kind: FileKind, one: bytes, other: bytes) -> bool:
        return one == other


def whole(outcome: BundleOutcome) -> Stored:
    """Returns what a record keeps of a bundle."""
    return Stored(outcome.target, outcome.size, outcome.checksum)


def unpacked(bundle: bytes) -> dict[str, bytes]:
    """Returns what Python's own reader finds in a bundle."""
    with tarfile.open(fileobj=io.BytesIO(bundle), mode="r:") as tar:
        return {each.name: tar.extractfile(each).read() for each in tar}  # type: ignore[union-attr]


class PackingGround(SideDoor):
    """Sources lie below `root`; `cold` is the root of the tier, where bundles lie below `bundles`."""

    @pytest.fixture
    def cold(self) -> str:
        raise NotImplementedError("return the location of an empty folder that is not the sources'")

    @pytest.fixture
    def packer(self) -> Pack:
        raise NotImplementedError

    @pytest.fixture
    def verifier(self) -> Verify:
        """What looks at bundles below `cold`."""
        raise NotImplementedError

    def bundle(self, root: str, cold: str, files: dict[str, bytes], name: str = "1") -> BundleJob:
        """Returns the job of a bundle whose sources were put there; tables do not know the size of every third."""
        for path, data in files.items():
            self.raw_put(join(root, path), data)
        told = [None if number % 3 == 2 else len(data) for number, data in enumerate(files.values())]
        members = [
            CopyJob(join(root, path), join(cold, path), size, "data") for path, size in zip(files, told, strict=True)
        ]
        return BundleJob(join(cold, "bundles", name), cold, tuple(members))

    def nothing_at(self, key: str) -> bool:
        try:
            self.raw_get(key)
        except KeyError:
            return True
        return False

    def holds(self, outcome: BundleOutcome, cold: str, files: dict[str, bytes]) -> None:
        """Asserts that a bundle lies there with just these files, and is as its outcome says."""
        assert outcome.error == ""
        data = self.raw_get(outcome.target)
        assert unpacked(data) == files
        assert len(data) == outcome.size
        assert [each.place for each in outcome.packed] == [join(cold, name) for name in files]
        for packed, expected in zip(outcome.packed, files.values(), strict=True):
            assert data[packed.offset : packed.offset + packed.size] == expected
            assert packed.checksum == f"sha256:{sha256(expected).hexdigest()}"
            assert (packed.size, packed.bundle) == (len(expected), outcome.target)


class PackContract(PackingGround):
    """The contract of Pack, and of GetPacked."""

    longest: ClassVar[int] = 300
    """Letters of the longest path below the root; no name in it is longer than files of a disk may be."""
    threads: ClassVar[int] = 4

    @pytest.fixture
    def members(self) -> GetPacked:
        """What reads members of bundles below `cold`."""
        raise NotImplementedError

    def awkward_files(self) -> dict[str, bytes]:
        deep = "/".join(["n" * 90] * 4)[: self.longest]
        names = [*self.awkward, "x" * 99, "x" * 100, "x" * 101, deep, "雪" * 60]
        return {name: b"%d" % number for number, name in enumerate(names)}

    def test_packs_literal_names_of_any_length(
        self, packer: Pack, members: GetPacked, verifier: Verify, root: str, cold: str
    ) -> None:
        files = self.awkward_files()
        (outcome,) = packer.pack([self.bundle(root, cold, files)], MarkingRelocation())
        self.holds(outcome, cold, files)
        assert [members.get(each) for each in outcome.packed] == list(files.values())
        assert verifier.verify([whole(outcome)])[0].fate is CopyFate.PRESENT

    def test_packs_files_of_every_size(
        self, packer: Pack, members: GetPacked, verifier: Verify, root: str, cold: str
    ) -> None:
        files = {f"{size}": some_bytes(size, seed=size) for size in (*EDGES, LARGE)} | {"last": b"x"}
        jobs = [
            self.bundle(root, cold, files),
            self.bundle(root, cold, {}, "empty"),
            self.bundle(root, cold, {"0": b""}, "one"),
        ]
        outcomes = packer.pack(jobs, MarkingRelocation())
        self.holds(outcomes[0], cold, files)
        self.holds(outcomes[1], cold, {})
        self.holds(outcomes[2], cold, {"0": b""})
        assert [members.get(each) for each in outcomes[0].packed] == list(files.values())
        assert {each.fate for each in verifier.verify([whole(each) for each in outcomes])} == {CopyFate.PRESENT}

    def test_what_names_other_files_is_packed_as_rewritten(self, packer: Pack, root: str, cold: str) -> None:
        files = {"a": some_bytes(100), "b": b"plain", "c": some_bytes(700)}
        job = self.bundle(root, cold, files)
        kinds = ("position-deletes", "data", "position-deletes")
        job = job._replace(
            members=tuple(each._replace(kind=kind) for each, kind in zip(job.members, kinds, strict=True))
        )
        (outcome,) = packer.pack([job], MarkingRelocation())
        self.holds(outcome, cold, {"a": MARK + files["a"], "b": b"plain", "c": MARK + files["c"]})

    def test_a_bundle_of_which_a_member_is_wrong_never_shows(self, packer: Pack, root: str, cold: str) -> None:
        job = self.bundle(root, cold, {"0": b"first", "1": b"four", "2": b"four"})
        first, second, third = job.members
        self.raw_put(join(root, "torn"), DAMAGED)
        missing = third._replace(source=join(root, "missing"))
        wrong = {
            "missing": (missing, missing._replace(size=3), missing._replace(kind="position-deletes")),
            "4 bytes": (second._replace(size=3), second._replace(size=5), second._replace(size=LARGE)),
            "is damaged": (second._replace(source=join(root, "torn"), size=7, kind="position-deletes"),),
            "below": (second._replace(target=join(root, "1")), second._replace(target=cold)),
            "plain path": (second._replace(target=join(cold, "a/../1")),),
            "no known kind": (second._replace(kind="gopher"),),
        }
        for words, members in wrong.items():
            for each in members:
                broken = job._replace(members=(first, each, third))
                (outcome,) = packer.pack([broken], MarkingRelocation())
                assert words in outcome.error
                assert outcome == BundleOutcome(job.target, error=outcome.error)
                assert self.nothing_at(job.target)
        assert packer.pack([job], MarkingRelocation())[0].error == ""

    def test_half_a_bundle_never_shows(self, packer: Pack, root: str, cold: str) -> None:
        job = self.bundle(root, cold, {"0": some_bytes(LARGE), "1": b"four"})
        first, second = job.members
        for wrong in (second._replace(size=5), second._replace(source=join(root, "missing"))):
            assert packer.pack([job._replace(members=(first, wrong))], MarkingRelocation())[0].error
            assert self.nothing_at(job.target)

    def test_one_that_fails_fails_alone_and_in_its_place(self, packer: Pack, root: str, cold: str) -> None:
        jobs = [self.bundle(root, cold, {f"{number}": b"x"}, f"b{number}") for number in range(4)]
        jobs[1] = jobs[1]._replace(target=join(cold, "a/../b"))
        jobs[2] = jobs[2]._replace(members=(jobs[2].members[0]._replace(size=9),))
        outcomes = packer.pack(jobs, MarkingRelocation())
        assert [each.target for each in outcomes] == [job.target for job in jobs]
        assert [bool(each.error) for each in outcomes] == [False, True, True, False]

    @pytest.mark.parametrize("size", [100, LARGE])
    def test_what_is_packed_again_is_the_same_bundle(self, packer: Pack, root: str, cold: str, size: int) -> None:
        """As a task that an engine runs twice."""
        job = self.bundle(root, cold, {"a": some_bytes(size), "b": b"x"})
        (first,), (again,) = packer.pack([job], MarkingRelocation()), packer.pack([job], MarkingRelocation())
        assert first.error == ""
        assert again == first

    @pytest.mark.parametrize("size", [100, LARGE])
    def test_another_object_stays_and_is_told(self, packer: Pack, root: str, cold: str, size: int) -> None:
        job = self.bundle(root, cold, {"a": some_bytes(size)})
        packer.pack([job], MarkingRelocation())
        data = self.raw_get(job.target)
        for other in (flipped(data, 600), data[:-1], b""):
            self.raw_put(job.target, other)
            (outcome,) = packer.pack([job], MarkingRelocation())
            assert "another object lies there" in outcome.error
            assert outcome.packed == ()
            assert self.raw_get(job.target) == other

    @pytest.mark.parametrize("size", [100, LARGE])
    def test_many_that_pack_the_same_at_once_agree(self, packer: Pack, root: str, cold: str, size: int) -> None:
        files = {"a": some_bytes(size), "b": b"x"}
        job = self.bundle(root, cold, files)
        with ThreadPoolExecutor(self.threads) as pool:
            outcomes = list(pool.map(lambda _: packer.pack([job], MarkingRelocation())[0], range(self.threads)))
        self.holds(outcomes[0], cold, files)
        assert outcomes == [outcomes[0]] * self.threads

    @pytest.mark.parametrize("size", [100, LARGE])
    @pytest.mark.parametrize("error", [LeaseHeld("the lease ran out"), StoreError("the lease cannot be renewed")])
    def test_nothing_is_written_once_it_may_not_be(
        self, packer: Pack, root: str, cold: str, size: int, error: Exception
    ) -> None:
        job = self.bundle(root, cold, {"a": some_bytes(size)})

        def no_more() -> None:
            raise error

        with pytest.raises(type(error), match=str(error)):
            packer.pack([job], MarkingRelocation(), no_more)
        assert self.nothing_at(job.target)

    def test_a_bit_that_changed_later_is_found_in_its_member_alone(
        self, packer: Pack, members: GetPacked, verifier: Verify, root: str, cold: str
    ) -> None:
        (outcome,) = packer.pack([self.bundle(root, cold, {"a": b"a" * 600, "b": b"b" * 600})], MarkingRelocation())
        one, other = outcome.packed
        self.raw_put(outcome.target, flipped(self.raw_get(outcome.target), one.offset + 599))
        with pytest.raises(StoreError, match="is not what was packed"):
            members.get(one)
        assert members.get(other) == b"b" * 600
        assert verifier.verify([whole(outcome)])[0].fate is CopyFate.FAILED

    def test_what_does_not_lie_there_is_not_read(self, packer: Pack, members: GetPacked, root: str, cold: str) -> None:
        (outcome,) = packer.pack([self.bundle(root, cold, {"a": b"a" * 600})], MarkingRelocation())
        (packed,) = outcome.packed
        for beyond in (
            packed._replace(offset=outcome.size - 599),
            packed._replace(offset=-1),
            packed._replace(size=-1),
        ):
            with pytest.raises(StoreError, match="beyond"):
                members.get(beyond)
        for other in (packed._replace(offset=packed.offset + 1), packed._replace(size=599), packed._replace(size=0)):
            with pytest.raises(StoreError, match="not what was packed"):
                members.get(other)
        with pytest.raises(ObjectNotFound):
            members.get(packed._replace(bundle=join(cold, "bundles", "missing")))

    def test_travels_in_a_pickle(self, packer: Pack, members: GetPacked, root: str, cold: str) -> None:
        for name, (pack, get) in {"x": (packer, members), "y": (packer.share(4), members.share(4))}.items():
            job = self.bundle(root, cold, {name: some_bytes(100)}, name)
            (outcome,) = pickle.loads(pickle.dumps(pack)).pack([job], MarkingRelocation())
            assert pickle.loads(pickle.dumps(get)).get(outcome.packed[0]) == some_bytes(100)


class PackManyContract(PackingGround):
    """The contract of PackMany: all bundles of a list, in its order, on threads or executors."""

    @pytest.fixture
    def many(self) -> PackMany:
        raise NotImplementedError

    def bundles(self, root: str, cold: str, number: int = 9) -> tuple[list[BundleJob], list[dict[str, bytes]]]:
        files = [{f"{each}/{name}": some_bytes(100 * each, each) for name in "äb"} for each in range(number)]
        return [self.bundle(root, cold, each, f"{number}.tar") for number, each in enumerate(files)], files

    def test_packs_all_in_order_and_finds_them_again(
        self, many: PackMany, packer: Pack, verifier: Verify, root: str, cold: str
    ) -> None:
        jobs, files = self.bundles(root, cold)
        outcomes = many.pack_many(jobs, packer, MarkingRelocation())
        assert [each.target for each in outcomes] == [job.target for job in jobs]
        for outcome, expected in zip(outcomes, files, strict=True):
            self.holds(outcome, cold, expected)
        assert many.pack_many(jobs, packer, MarkingRelocation()) == outcomes
        assert {each.fate for each in verifier.verify([whole(each) for each in outcomes])} == {CopyFate.PRESENT}

    def test_failures_keep_their_place(self, many: PackMany, packer: Pack, root: str, cold: str) -> None:
        jobs, _ = self.bundles(root, cold, 5)
        jobs[3] = jobs[3]._replace(members=(jobs[3].members[0]._replace(source=join(root, "missing")),))
        outcomes = many.pack_many(jobs, packer, MarkingRelocation())
        assert [number for number, each in enumerate(outcomes) if each.error] == [3]
        assert "missing" in outcomes[3].error
        assert self.nothing_at(jobs[3].target)

    def test_nothing_to_do_is_done(self, many: PackMany, packer: Pack) -> None:
        assert many.pack_many([], packer, MarkingRelocation()) == []

    def test_without_the_lease_nothing_is_written(self, many: PackMany, packer: Pack, root: str, cold: str) -> None:
        jobs, _ = self.bundles(root, cold, 2)

        def lost() -> None:
            raise LeaseHeld("as asked")

        with pytest.raises(LeaseHeld):
            many.pack_many(jobs, packer, MarkingRelocation(), lost)
        assert all(self.nothing_at(job.target) for job in jobs)


class PackManyToBuckets(PackManyContract):
    """The same where the bundles go to a bucket, which may be missing."""

    def test_a_bucket_that_is_gone_is_raised_as_everywhere(
        self, many: PackMany, packer: Pack, root: str, cold: str
    ) -> None:
        gone = [job._replace(target=f"s3://no-such-bucket/{number}") for number, job in self._numbered(root, cold)]
        with pytest.raises(NoSuchBucket, match="there is no bucket s3://no-such-bucket"):
            many.pack_many(gone, packer, MarkingRelocation())

    def _numbered(self, root: str, cold: str) -> Sequence[tuple[int, BundleJob]]:
        return list(enumerate(self.bundles(root, cold, 3)[0]))
