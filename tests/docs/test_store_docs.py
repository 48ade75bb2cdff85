"""What the guide says of gentle stores is true: firnline reads its example, and its figures are the real ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from firnline.cli.main import run
from firnline.local.delete import LocalDeleteMany
from firnline.local.engine import LocalEngine
from firnline.policy.limits import LIMITS, StoreLimits
from firnline.policy.parse import parse_policy
from firnline.stores.throttle import DEFAULTS, Lane, Lanes

from .pages import ROOT, blocks

GUIDE = ROOT / "docs" / "guides" / "stores.md"
REFERENCE = ROOT / "docs" / "reference" / "configuration.md"
NAMES = {"s3": "S3", "gs": "Google", "abfs": "Azure", "az": "Azure"}


def example() -> str:
    (found,) = [block for block in blocks(GUIDE, "yaml") if block.startswith("# firnline.yaml")]
    return found


def test_the_example_means_what_the_words_below_it_say() -> None:
    lanes = Lanes(StoreLimits.of(parse_policy(example()).stores))
    assert lanes.reads("s3://lake/archive/t") == lanes.reads("s3a://lake/sales/t") == lanes.reads("s3://lake")
    assert lanes.deletes("s3://lake/archive/t") == Lane(
        "deletes s3://lake/archive/", 50, (2, "deletes s3://lake/archive/"), 100
    )
    assert lanes.deletes("s3://lake/sales/t") == Lane("deletes s3://lake/", 500)
    assert lanes.reads("/mnt/shared/t").at_once == (2, "reads file:///mnt/shared/")


def test_doctor_shows_the_example_as_the_page_does(tiny_lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("gentle.yaml").write_text(example())
    assert run(["doctor", "--config", "gentle.yaml"]) == 0
    printed = [line.split() for line in capsys.readouterr().out.splitlines() if " limits " in line]
    (shown,) = [block for block in blocks(GUIDE, "text") if " limits " in block]
    assert printed == [line.split() for line in shown.splitlines()]


def test_a_plan_is_made_within_the_limits_of_the_example(tiny_lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = example().replace("/mnt/shared", str(tiny_lake))
    Path("gentle.yaml").write_text(said)
    assert run(["plan", "lake.artemis.registry", "--config", "gentle.yaml", "--engine", "local", "--json"]) == 0
    gentle = capsys.readouterr().out
    assert run(["plan", "lake.artemis.registry", "--engine", "local", "--json"]) == 0
    assert len(gentle) > 100


@pytest.mark.parametrize("page", [GUIDE, REFERENCE], ids=lambda path: path.stem)
@pytest.mark.parametrize("name", LIMITS)
def test_every_limit_is_documented(page: Path, name: str) -> None:
    assert f"`{name}`" in page.read_text()


def test_what_is_allowed_is_documented() -> None:
    page = REFERENCE.read_text()
    for name, (_, allowed) in LIMITS.items():
        (row,) = [line for line in page.splitlines() if line.startswith("|") and f"`{name}`" in line]
        assert row.endswith(f"| {allowed} |")


def test_the_defaults_are_those_that_the_page_names() -> None:
    page = GUIDE.read_text()
    for scheme, rates in DEFAULTS.items():
        for verb, rate in (("reads", rates.reads), ("deletes", rates.deletes), ("writes", rates.writes)):
            (row,) = [line for line in page.splitlines() if line.startswith(f"| `{verb}-per-second`")]
            assert f"{NAMES[scheme]} {rate:,.0f}" in row
    assert f"{LocalEngine().threads} threads of the `local` engine" in page
    assert f"| {LocalDeleteMany().threads} threads" in page
