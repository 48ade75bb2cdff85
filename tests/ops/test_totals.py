"""The totals of a plan add up to the disk: kept, victims, spared and metadata documents are all that is listed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

import firnline
from firnline.app.verbs.plan_views import PlanView
from firnline.model.files import Tally, Totals
from firnline.plans.metadata_versions import MetadataVersions
from firnline.ports.engines import OUTSIDE
from firnline.testing.engines import a_long_life
from firnline.testing.manifests import AvroLayout
from firnline.testing.surveys import files_of
from firnline.testing.tables import QuickFiles, SmallTable


def on_disk(*folders: str) -> dict[str, int]:
    """Returns every file below the folders with its size, asked of the file system and of nobody else."""
    roots = [folder.removeprefix("file://") for folder in folders]
    found = (Path(place, name) for root in roots for place, _, names in os.walk(root) for name in names)
    return {f"file://{path}": path.stat().st_size for path in found}


def said(view: PlanView) -> tuple[dict[str, int], dict[str, int]]:
    """Returns the sizes of what a plan keeps and of what it would free, file by file."""
    assert view.planned.survey is not None
    kept, victims = view.planned.survey.kept_batches(), view.planned.survey.victim_batches()
    return tuple({path: size for path, (_, size) in files_of(each).items()} for each in (kept, victims))  # type: ignore[return-value]


def tally(sizes: dict[str, int]) -> Tally:
    return Tally(len(sizes), sum(sizes.values()))


def by_kind(table: SmallTable, paths: dict[str, int]) -> Totals:
    return Totals.of((table.made[path].kind, Tally(1, table.made[path].size)) for path in paths)


@pytest.fixture(params=[1, 2, 3])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> SmallTable:
    made, _ = a_long_life(SmallTable(QuickFiles(), f"file://{tmp_path}/t", AvroLayout(request.param)))
    made.publish()
    made.append(2, outside=True)
    made.overwrite([path for path in made.live() if "-elsewhere/" in path])
    made.append(2)
    made.publish(compressed=True)
    return made


def test_kept_and_victims_and_documents_are_all_that_is_listed(table: SmallTable) -> None:
    view = firnline.open().plan(table.location, now=table.now_ms, older_than=table.now_ms, include_outside=True)
    kept, victims = said(view)
    listed = on_disk(table.location, f"{table.location}-elsewhere")
    assert kept.keys().isdisjoint(victims)
    assert listed.keys() - kept.keys() - victims.keys() == {*table.documents, table.hint}
    assert kept | victims == {path: size for path, size in listed.items() if path in table.made}
    documents = tally({path: listed[path] for path in table.documents})
    assert view.plan.metadata_versions == MetadataVersions(documents.files, documents.bytes)
    assert view.plan.kept == by_kind(table, kept)
    assert view.plan.victims == by_kind(table, victims)
    unknown = tally({path: listed[path] for path in (*table.documents, table.hint)})
    assert view.plan.kept.all + view.plan.victims.all + unknown == tally(listed)
    assert view.plan.victims.all.files > 3


def test_with_files_elsewhere_spared_the_totals_still_add_up(table: SmallTable) -> None:
    view = firnline.open().plan(table.location, now=table.now_ms, older_than=table.now_ms)
    kept, victims = said(view)
    listed = on_disk(table.location, f"{table.location}-elsewhere")
    spared = {path: size for path, size in listed.items() if path in table.made and path not in kept | victims}
    assert spared
    assert all(path.startswith(f"{table.location}-elsewhere/") for path in spared)
    assert view.plan.spared == {OUTSIDE: tally(spared)}
    unknown = tally({path: listed[path] for path in (*table.documents, table.hint)})
    assert view.plan.kept is not None
    assert view.plan.kept.all + view.plan.victims.all + tally(spared) + unknown == tally(listed)


# Where PyIceberg merges manifests it also leaves the ones it wrote first: orphans, which no snapshot names.
LEFT_BY_PYICEBERG = {"registry": (), "telemetry": ("avro",)}


def named_by_pyiceberg(lake: Path, name: str) -> set[str]:
    """Returns every file that any snapshot of the table needs, as PyIceberg reads it."""
    catalog = SqlCatalog("lake", uri=f"sqlite:///{lake}/catalog.db")
    table = catalog.load_table(f"artemis.{name}")
    named = set()
    for snapshot in table.metadata.snapshots:
        named.add(snapshot.manifest_list)
        for manifest in snapshot.manifests(table.io):
            named.add(manifest.manifest_path)
            named |= {entry.data_file.file_path for entry in manifest.fetch_manifest_entry(table.io)}
    catalog.close()
    return named


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", LEFT_BY_PYICEBERG)
def test_the_totals_of_a_real_table_are_the_bytes_on_disk(in_lake: Path, name: str) -> None:
    keep = {"within": "3d", "daily": "off", "monthly": "off", "tags": "none-*", "last": "1"}
    view = firnline.open().plan(f"lake.artemis.{name}", keep=keep)
    kept, victims = said(view)
    listed = on_disk(f"file://{in_lake.resolve()}/warehouse/artemis/{name}")
    unknown = {path: size for path, size in listed.items() if path not in kept | victims}
    assert kept.keys() | victims.keys() == named_by_pyiceberg(in_lake, name)
    assert listed == kept | victims | unknown
    assert victims
    assert {path.rpartition("/")[2].partition(".")[2] for path in unknown} <= {
        "metadata.json",
        *LEFT_BY_PYICEBERG[name],
    }
    assert view.plan.kept is not None
    assert view.plan.kept.all + view.plan.victims.all + tally(unknown) == tally(listed)
