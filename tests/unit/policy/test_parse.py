"""firnline.yaml: what it means, and what every mistake in it says."""

from __future__ import annotations

import subprocess
import sys

import pytest

from firnline.errors import PolicyError
from firnline.model.times import DAY_MS, HOUR_MS
from firnline.policy.parse import Section, parse_policy
from firnline.policy.periods import Period
from firnline.policy.rules import KeepLast, KeepPeriods, KeepTags, KeepWithin

WHOLE = """\
keep: {within: 30d, last: 3, hourly: 24, daily: 7d, weekly: 4, monthly: 12, yearly: all, tags: ["audit-*"]}
grace: 24h
blast-radius: 90%
catalogs:
  prod:
    engine: spark
    namespaces:
      artemis:
        include-outside: true
        tables:
          registry:
            keep:
              within: 90d
              last: off
            records: s3://bucket/records
"""


def test_a_whole_file_with_lines() -> None:
    root = parse_policy(WHOLE, "firnline.yaml")
    assert {name: setting.value for name, setting in root.keep.items()} == {
        "within": KeepWithin(30 * DAY_MS),
        "last": KeepLast(3),
        "hourly": KeepPeriods(Period.HOURLY, count=24),
        "daily": KeepPeriods(Period.DAILY, window_ms=7 * DAY_MS),
        "weekly": KeepPeriods(Period.WEEKLY, count=4),
        "monthly": KeepPeriods(Period.MONTHLY, count=12),
        "yearly": KeepPeriods(Period.YEARLY),
        "tags": KeepTags(("audit-*",)),
    }
    assert (root.settings["grace"].value, root.settings["blast-radius"].value) == (24 * HOUR_MS, 0.9)
    assert str(root.keep["daily"].source) == "firnline.yaml:1, global"
    prod = root.inside["prod"]
    assert str(prod.settings["engine"].source) == "firnline.yaml:6, catalog prod"
    artemis = prod.inside["artemis"]
    assert artemis.settings["include-outside"].value is True
    registry = artemis.inside["registry"]
    assert registry.keep["last"].value is None
    assert str(registry.keep["last"].source) == "firnline.yaml:14, table registry"
    assert registry.settings["records"].value == "s3://bucket/records"


@pytest.mark.parametrize("text", ["", "# nothing yet\n"])
def test_a_file_without_content_says_nothing(text: str) -> None:
    assert parse_policy(text) == Section()


MISTAKES = [
    ("keep:\n  last: 3\n\n  weakly: 4\n", "f.yaml:4: unknown key 'weakly' (did you mean 'weekly'?)"),
    ("kep: {last: 3}\n", "f.yaml:1: unknown key 'kep' (did you mean 'keep'?)"),
    ("keep: {last: 3}\nzzz: 1\n", "f.yaml:2: unknown key 'zzz'"),
    ("catalogs:\n  prod:\n    tables: {}\n", "f.yaml:3: unknown key 'tables'"),
    ("catalogs:\n  prod:\n    catalogs: {}\n", "f.yaml:3: unknown key 'catalogs'"),
    ("keep:\n  last: 3\n  daily: 2\n  last: 4\n", "f.yaml:4: 'last' is written twice, first on line 2"),
    ("grace: 1h\ngrace: 2h\n", "f.yaml:2: 'grace' is written twice, first on line 1"),
    ("catalogs:\n  prod: {}\n  prod: {}\n", "f.yaml:3: 'prod' is written twice, first on line 2"),
    ("keep: {}\n", "f.yaml:1: empty policy: keep has no rule"),
    ("grace: 1h\ncatalogs:\n  prod:\n    keep: {}\n", "f.yaml:4: empty policy: keep has no rule"),
    ("keep: {last: off, daily: off}\n", "f.yaml:1: empty policy: every rule is off"),
    ("keep:\n", "f.yaml:1: keep must be a mapping of keys to values"),
    ("keep: [last]\n", "f.yaml:1: keep must be a mapping of keys to values"),
    ("catalogs:\n  prod:\n", "f.yaml:2: prod must be a mapping of keys to values"),
    ("- keep\n", "f.yaml:1: the file must be a mapping of keys to values"),
    ("just words\n", "f.yaml:1: the file must be a mapping of keys to values"),
    ("keep: {last: 0}\n", "f.yaml:1: last: a number must be 1 or more, not 0"),
    ("keep: {last: -3}\n", "f.yaml:1: last: a number must be 1 or more, not -3"),
    ("keep: {daily: 0}\n", "f.yaml:1: daily: a number must be 1 or more, not 0"),
    ("keep: {daily: 0d}\n", "f.yaml:1: daily: 0s is shorter than one day (m means minutes)"),
    ("keep: {monthly: 12m}\n", "f.yaml:1: monthly: 12m is shorter than one month (m means minutes)"),
    ("keep: {last: 3d}\n", "f.yaml:1: last: '3d' is not a number"),
    ("keep: {last: 1.5}\n", "f.yaml:1: last: '1.5' is not a number"),
    ("keep: {last: }\n", "f.yaml:1: last: '' is not a number"),
    ("keep: {last: [1]}\n", "f.yaml:1: last: a list is not allowed here"),
    ("keep: {last: {a: 1}}\n", "f.yaml:1: last: a plain value is needed, not a mapping"),
    ("keep: {tags: [[a]]}\n", "f.yaml:1: tags: a plain value is needed, not a mapping"),
    ("keep: {tags: []}\n", "f.yaml:1: tags: a tag pattern must not be empty"),
    ("keep: {tags: 'a,,b'}\n", "f.yaml:1: tags: a tag pattern must not be empty"),
    ("keep: {within: 30}\n", "f.yaml:1: within: not a duration: '30'"),
    ("keep: {within: 0s}\n", "f.yaml:1: within: a window must be longer than nothing"),
    ("keep: {within: all}\n", "f.yaml:1: within: not a duration: 'all'"),
    ("keep: {daily: soon}\n", "f.yaml:1: daily: not a duration: 'soon'"),
    ("keep: {daily: no}\n", "f.yaml:1: daily: not a duration: 'no'"),
    ("grace: tomorrow\n", "f.yaml:1: grace: not a duration: 'tomorrow'"),
    ("grace: [1h]\n", "f.yaml:1: grace: a list is not allowed here"),
    ("blast-radius: 0.9\n", "f.yaml:1: blast-radius: '0.9' is not a share of the table"),
    ("blast-radius: 101%\n", "f.yaml:1: blast-radius: '101%' is not a share of the table"),
    ("blast-radius: 0%\n", "f.yaml:1: blast-radius: '0%' is not a share of the table"),
    ("engine: flink\n", "f.yaml:1: engine: 'flink' is not one of auto, local, spark"),
    ("include-outside: yes\n", "f.yaml:1: include-outside: 'yes' is not one of true, false"),
    ("records: ''\n", "f.yaml:1: records: a location must not be empty"),
    ("? [a]\n: 1\n", "f.yaml:1: a key in the file must be a plain word"),
    ("<<: {keep: {last: 3}}\n", "f.yaml:1: unknown key '<<'"),
]


@pytest.mark.parametrize(("text", "message"), MISTAKES, ids=[message for _, message in MISTAKES])
def test_a_mistake_names_line_key_and_what_is_allowed(text: str, message: str) -> None:
    with pytest.raises(PolicyError) as caught:
        parse_policy(text, "f.yaml")
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("keep: {weakly: 4}", "allowed: last, within, hourly, daily, weekly, monthly, quarterly, yearly, tags"),
        ("keep: {daily: soon}", "daily takes a number of 1 or more, a duration such as 30d, all, or off"),
        ("keep: {}", "an empty policy would expire everything but the heads"),
    ],
)
def test_a_mistake_shows_the_way_out(text: str, hint: str) -> None:
    with pytest.raises(PolicyError) as caught:
        parse_policy(text)
    assert caught.value.hint.startswith(hint)


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("keep: {last: 3\n", "f.yaml:2: not YAML: "),
        ("keep: {last: 3}\n\tx: 1\n", "f.yaml:2: not YAML: "),
        ("keep: *nowhere\n", "f.yaml:1: not YAML: "),
        ("keep: {tags: *audit}\n", "f.yaml:1: not YAML: "),
        ("keep: {last: 3}\n--- \nkeep: {last: 4}\n", "f.yaml:2: not YAML: "),
        ("keep: \x00\n", "f.yaml: not YAML: "),
        ("[" * 5_000, "f.yaml"),
        ("keep: {last: " + "9" * 5_000 + "}", "f.yaml:1: last: '999"),
        ("keep: {within: " + "9" * 5_000 + "d}", "f.yaml:1: within: '999"),
        ("a: &a {catalogs: *a}\n", "f.yaml:1: unknown key 'a'"),
        ("catalogs: &a {prod: *a}\n", "f.yaml:1: unknown key 'prod'"),
    ],
)
def test_hostile_files_are_refused_in_short_words(text: str, start: str) -> None:
    with pytest.raises(PolicyError) as caught:
        parse_policy(text, "f.yaml")
    assert str(caught.value).startswith(start)
    assert len(str(caught.value)) < 250


def test_tags_may_be_one_text_or_a_list() -> None:
    for text in ("keep: {tags: 'a-*, b'}", "keep: {tags: ['a-*', b]}", "keep:\n  tags:\n  - a-*\n  - b\n"):
        assert parse_policy(text).keep["tags"].value == KeepTags(("a-*", "b"))


def test_deciding_needs_no_yaml() -> None:
    program = "import firnline.policy.inherit, firnline.policy.why, sys; sys.exit('yaml' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
