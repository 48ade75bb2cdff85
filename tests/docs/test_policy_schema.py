"""The schema of firnline.yaml says what the reader of files says: every key is in it, every example is sound by it, and
no file that can be read is called wrong.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import firnline
from firnline.cli.main import run
from firnline.errors import FirnlineError
from firnline.policy.limits import LIMITS
from firnline.policy.parse import parse_policy
from firnline.policy.prices import PRICE_KEYS
from firnline.policy.rules import RULE_NAMES
from firnline.policy.tiers import TIER_KEYS
from firnline.policy.values import SETTINGS, TOP_ONLY
from firnline.policy.worker.keys import WORKER_KEYS

from .editors import loaded, violations
from .pages import DOCS, ROOT, blocks, table_rows

SCHEMA = firnline.policy_schema()
REFERENCE = DOCS / "reference" / "policy.md"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md")), *sorted((ROOT / "deploy").rglob("*.md"))]
OF_OTHERS = re.compile(r"^(catalog|apiVersion|kind|services|name):", re.MULTILINE)
EXAMPLES = [
    pytest.param(text, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, text in enumerate(blocks(page, "yaml"))
    if not OF_OTHERS.search(text)
]


def test_the_page_beside_the_reference_is_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["policy", "schema"]) == 0
    printed = capsys.readouterr().out
    assert json.loads(printed) == SCHEMA
    kept = (DOCS / "reference" / "firnline.schema.json").read_text()
    assert kept == printed, "run: firnline policy schema > docs/reference/firnline.schema.json"


@pytest.mark.parametrize("text", EXAMPLES)
def test_every_example_of_a_file_is_sound(text: str) -> None:
    parse_policy(text)
    assert violations(SCHEMA, loaded(text)) == []


def test_there_are_examples_of_every_page_that_has_any() -> None:
    assert len(EXAMPLES) > 15


def test_every_documented_key_is_in_it_and_every_key_is_documented() -> None:
    top = SCHEMA["properties"].keys()
    documented = {name for row in table_rows(REFERENCE) for name in re.findall(r"^`([a-z][a-z-]*)`$", row[0])}
    of_worker = SCHEMA["properties"]["worker"]["properties"].keys()
    rules = SCHEMA["definitions"]["keep"]["properties"].keys()
    assert documented == {*top, *of_worker, *rules} - {"keep", "catalogs"}
    assert top == {"keep", "catalogs", "stores", "tiers", "prices", "worker", *SETTINGS}
    assert list(rules) == list(RULE_NAMES)
    assert of_worker == WORKER_KEYS.keys()
    groups = {"stores": LIMITS, "tiers": TIER_KEYS, "prices": PRICE_KEYS}
    for name, keys in groups.items():
        inner = SCHEMA["properties"][name]["additionalProperties"]
        assert [*inner["properties"]] == [*keys]
    for level in ("catalog", "namespace", "table"):
        assert not SCHEMA["definitions"][level]["properties"].keys() & {*TOP_ONLY, *groups, "worker"}


TEXTS = [
    "3",
    "0",
    "-1",
    "all",
    "off",
    "7d",
    "1d12h",
    "36h",
    "0s",
    "90",
    "50%",
    "0.5%",
    "100%",
    "auto",
    "local",
    "spark",
    "true",
    "false",
    "forever",
    "2026-01-01T00:00:00Z",
    "1787389200000",
    "lake",
    "none",
    "disk",
    "redis://cache/0",
    "s3://cold/keep",
    "/data/records",
    "https://hooks/x",
    "500GiB",
    "1TiB",
    "12XiB",
    "identifier",
    "ordinal",
    "uuid",
    "main",
    "offset",
    "start",
    "GLACIER_IR",
    "daily",
    "0.004",
    "22:00-06:00",
    "always",
    "measured",
    "usual",
    "250",
    "[main,release-1]",
    "['a-*','b']",
    "['*']",
    "[3051729675574597004]",
    "[2026]",
    "''",
    "'3'",
    "'true'",
    "'0.5'",
    "[]",
    "{a:1}",
    "lake.a.b",
    "+3",
    "1e3",
    "0x10",
]
PLACES = [
    *(f"keep: {{{name}: TEXT}}" for name in RULE_NAMES),
    *(f"{name}: TEXT" for name in SETTINGS),
    *(f"catalogs: {{c: {{{name}: TEXT}}}}" for name in SETTINGS),
    *(f'catalogs: {{c: {{namespaces: {{"n*": {{tables: {{t: {{{name}: TEXT}}}}}}}}}}}}' for name in SETTINGS),
    *(f"worker: {{{name}: TEXT}}" for name in WORKER_KEYS),
    *(f"tiers: {{cold: {{{name}: TEXT}}}}" for name in TIER_KEYS),
    *(f"prices: {{STANDARD: {{{name}: TEXT}}}}" for name in PRICE_KEYS),
    *(f"stores: {{'s3://lake': {{{name}: TEXT}}}}" for name in LIMITS),
    "graze: TEXT", "keep: TEXT", "catalogs: TEXT", "catalogs: {c: {tables: {}}}", "catalogs: {c: {keep: {dayly: 3}}}",
]  # fmt: skip


def readable(text: str) -> bool:
    try:
        parse_policy(text)
    except FirnlineError:
        return False
    return True


def test_no_file_that_can_be_read_is_called_wrong_and_most_others_are() -> None:
    """Every value that any key takes, at every key: an editor that cries wolf is turned off."""
    found = {True: 0, False: 0}
    for place in PLACES:
        for said in TEXTS:
            text = place.replace("TEXT", said)
            wrong = violations(SCHEMA, loaded(text))
            if readable(text):
                assert wrong == [], text
            else:
                found[bool(wrong)] += 1
    assert found[True] > 10 * found[False], found


@given(text=st.from_regex(r"[0-9smhdwy.%:a-c-]{1,8}", fullmatch=True), place=st.sampled_from(PLACES))
def test_nor_is_any_other_plain_text(text: str, place: str) -> None:
    said = place.replace("TEXT", json.dumps(text) if not re.fullmatch(r"[0-9a-z%]+", text) else text)
    assert not readable(said) or violations(SCHEMA, loaded(said)) == []


def test_a_misspelt_key_is_found() -> None:
    def wrong(document: Any) -> list[str]:
        return violations(SCHEMA, document)

    assert wrong({"keep": {"dayly": 3}}) == [".keep: 'dayly' is no key"]
    assert wrong({"catalogs": {"c": {"namespaces": {"*": {"tables": {"t": {"grade": "1h"}}}}}}})
    assert wrong({"catalogs": {"c": {"webhook": "https://hooks"}}}), "only the top of a file has it"
    assert wrong({"keep": {}}), "a keep without a rule is an error of the reader, too"


def test_the_line_for_editors_is_what_the_pages_say() -> None:
    line = "# yaml-language-server: $schema=./firnline.schema.json"
    for page in (REFERENCE, DOCS / "guides" / "see-before-you-touch.md"):
        assert line in page.read_text()
    assert Path(DOCS / "reference" / "firnline.schema.json").is_file()
