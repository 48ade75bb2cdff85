"""What only version 2 of the format knows: a status of the repository, and names of refs that are no paths."""

from __future__ import annotations

from pathlib import Path

import icechunk
import pytest

from firnline.errors import CollectionForbidden

from .growing import LIBRARY
from .open_writing import Scene, arrays, commit, objects, old_repository, opened

pytestmark = pytest.mark.skipif(LIBRARY < (2, 0), reason="the library writes version 1 only")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, set[str]]:
    folder = tmp_path_factory.mktemp("second") / "r"
    return folder, old_repository(folder, 2)


def limit(scene: Scene, availability: icechunk.RepoAvailability, reason: str | None = None) -> None:
    opened(scene.folder).set_status(icechunk.RepoStatus(availability=availability, limited_availability_reason=reason))


def test_nothing_goes_of_a_repository_that_is_read_only(scene: Scene) -> None:
    """The library's own collection refuses it; a search and the purge of what was committed before do, too."""
    scene.plan()
    scene.go_on()
    limit(scene, icechunk.RepoAvailability.read_only, "frozen by the auditors")
    before = objects(scene.folder)
    for act in (scene.go_on, scene.search, scene.plan):
        with pytest.raises(CollectionForbidden, match=r"read-only \(frozen by the auditors\)"):
            act()
    assert objects(scene.folder) == before
    limit(scene, icechunk.RepoAvailability.online)
    assert [each.state for each in scene.go_on()] == ["done"]
    scene.search()
    assert len(objects(scene.folder)) < len(before)


def test_refs_with_names_that_would_be_paths(scene: Scene) -> None:
    names = ("feature/x", "../up", "a b", "ü", "x\ny")
    old, repo = arrays(scene.folder), opened(scene.folder)
    for name in names:
        repo.create_branch(name, repo.lookup_branch("main"))
        repo.create_tag(name, repo.lookup_branch("main"))
    for value in range(3):
        commit(scene.folder, 6, 50 + value)
    scene.plan()
    scene.go_on()
    assert [each.state for each in scene.go_on()] == ["done"]
    assert [arrays(scene.folder, name) for name in names] == [old] * len(names)
    scene.process().drop(scene.location, ["feature/x"], grace="1m", blast_radius=1.0)
    scene.go_on()
    assert "feature/x" not in opened(scene.folder).list_branches()
    scene.is_sound()
