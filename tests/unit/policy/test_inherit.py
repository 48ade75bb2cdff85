"""Which level counts, key by key, and where every value came from."""

from __future__ import annotations

import pytest

from firnline.errors import PolicyError
from firnline.model.times import DAY_MS, HOUR_MS
from firnline.policy.inherit import Effective, effective
from firnline.policy.native import NativeRetention
from firnline.policy.parse import Section, parse_policy

FILE = """\
keep: {last: 3, daily: 7d}
grace: 24h
catalogs:
  prod:
    keep: {last: 5, yearly: all}
    engine: spark
    namespaces:
      artemis:
        keep: {within: 30d}
        grace: 2h
        tables:
          registry: {keep: {within: 90d, daily: off}}
          measurements: {keep: {within: 7d}}
      artemis.raw:
        keep: {last: 1}
        tables:
          registry: {blast-radius: 50%}
"""


@pytest.fixture(scope="module")
def config() -> Section:
    return parse_policy(FILE)


def described(found: Effective) -> str:
    return found.policy.describe()


LAST_3 = "last 3 (firnline.yaml:1, global)"
DAILY = "daily within 7d (firnline.yaml:1, global)"
LAST_5 = "last 5 (firnline.yaml:5, catalog prod)"
YEARLY = "yearly all (firnline.yaml:5, catalog prod)"
WITHIN_30 = "within 30d (firnline.yaml:9, namespace artemis)"
WITHIN_90 = "within 90d (firnline.yaml:12, table registry)"
LAST_1 = "last 1 (firnline.yaml:15, namespace artemis.raw)"


@pytest.mark.parametrize(
    ("catalog", "namespace", "table", "expected"),
    [
        (None, "", "/a/b", [LAST_3, DAILY]),
        ("test", "artemis", "registry", [LAST_3, DAILY]),
        ("prod", "other", "t", [LAST_5, DAILY, YEARLY]),
        ("prod", "artemis", "t", [LAST_5, WITHIN_30, DAILY, YEARLY]),
        ("prod", "artemis", "registry", [LAST_5, WITHIN_90, YEARLY]),
        ("prod", "artemis.raw", "registry", [LAST_1, WITHIN_30, DAILY, YEARLY]),
        ("prod", "artemis2", "t", [LAST_5, DAILY, YEARLY]),
    ],
)
def test_each_key_comes_from_the_most_specific_level(config, catalog, namespace, table, expected) -> None:
    assert described(effective(config, catalog, tuple(namespace.split(".")), table)) == "keep " + ", ".join(expected)


def test_properties_beat_the_namespace_the_entry_beats_properties_and_flags_beat_all(config) -> None:
    properties = {"firnline.keep.within": "40d", "firnline.keep.hourly": "6", "firnline.grace": "3h", "owner": "x"}
    found = effective(config, "prod", ("artemis",), "t", properties=properties)
    assert str(found.keep["within"].source) == "table property firnline.keep.within"
    assert (found.grace.value, str(found.grace.source)) == (3 * HOUR_MS, "table property firnline.grace")
    found = effective(
        config, "prod", ("artemis",), "registry", properties=properties, flags={"hourly": "12", "grace": "0s"}
    )
    assert str(found.keep["within"].source) == "firnline.yaml:12, table registry"
    assert (str(found.keep["hourly"].value), str(found.keep["hourly"].source)) == ("hourly 12", "asked")
    assert found.grace.value == 0


def test_what_was_overridden_is_remembered_nearest_first(config) -> None:
    found = effective(config, "prod", ("artemis", "raw"), "registry", flags={"last": "9"})
    chain = [(str(setting.value), str(setting.source)) for setting in found.keep["last"].overridden()]
    assert chain == [
        ("last 1", "firnline.yaml:15, namespace artemis.raw"),
        ("last 5", "firnline.yaml:5, catalog prod"),
        ("last 3", "firnline.yaml:1, global"),
    ]
    assert [str(setting.source) for setting in found.grace.overridden()] == ["firnline.yaml:2, global", "default"]


def test_a_rule_turned_off_is_shown_but_does_not_count(config) -> None:
    found = effective(config, "prod", ("artemis",), "registry")
    assert found.keep["daily"].value is None
    assert "daily" not in described(found)


def test_settings_inherit_and_have_defaults(config) -> None:
    found = effective(config, "prod", ("artemis", "raw"), "registry")
    assert (found.blast_radius.value, found.engine.value, found.include_outside.value) == (0.5, "spark", False)
    plain = effective(Section(), None, (), "t")
    assert (plain.grace.value, plain.blast_radius.value, plain.engine.value) == (DAY_MS, 0.9, "auto")
    assert plain.records.value is None
    assert str(plain.grace.source) == "default"


def test_without_a_rule_the_tables_own_retention_counts() -> None:
    policy = effective(Section(), "prod", ("artemis",), "t", properties={"owner": "x"}).policy
    assert policy.is_native
    assert policy.describe() == "the table's own retention"
    assert policy.describe(NativeRetention(5 * DAY_MS, 1)) == (
        "the table's own retention: 1 per branch and what is newer than 5d; refs for ever"
    )


def test_turning_every_rule_off_is_an_empty_policy(config) -> None:
    flags = {"last": "off", "daily": "off"}
    with pytest.raises(PolicyError, match=r"empty policy: every rule of t is off: last \(asked\), daily \(asked\)"):
        effective(config, None, (), "t", flags=flags)


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        (
            {"firnline.keep.dayly": "3"},
            "table property firnline.keep.dayly: unknown key 'dayly' (did you mean 'daily'?)",
        ),
        ({"firnline.keep": "3"}, "table property firnline.keep: unknown key ''"),
        ({"firnline.keep.last": "none"}, "table property firnline.keep.last: 'none' is not a number"),
        ({"firnline.keep.tags": ""}, "table property firnline.keep.tags: a tag pattern must not be empty"),
        ({"firnline.grace": "1"}, "table property firnline.grace: not a duration: '1'"),
    ],
)
def test_a_property_that_is_not_understood_is_an_error(properties: dict[str, str], message: str) -> None:
    with pytest.raises(PolicyError) as caught:
        effective(Section(), None, (), "t", properties=properties)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"last": "x"}, "--keep-last: 'x' is not a number"),
        ({"engine": "x"}, "--engine: 'x' is not one of auto, local, spark"),
        ({"lats": "3"}, "flags: unknown key 'lats' (did you mean 'last'?)"),
    ],
)
def test_a_flag_that_is_not_understood_is_an_error(flags: dict[str, str], message: str) -> None:
    with pytest.raises(PolicyError) as caught:
        effective(Section(), None, (), "t", flags=flags)
    assert str(caught.value) == message


def test_tags_of_a_property_are_a_list_with_commas() -> None:
    found = effective(Section(), None, (), "t", properties={"firnline.keep.tags": "audit-*, v?"})
    assert found.policy.tag_patterns == ("audit-*", "v?")


def test_tag_patterns_are_sorted_whatever_the_hash_seed() -> None:
    patterns = [f"p{number}" for number in range(30)]
    found = effective(Section(), None, (), "t", flags={"tags": ",".join(patterns)})
    assert found.policy.tag_patterns == tuple(sorted(patterns))


@pytest.mark.parametrize(
    ("catalog", "namespace", "table", "line"),
    [
        ("prood", "artemis", "t", 4),
        ("prdo", "artemis", "t", 4),
        ("prod", "artemus", "t", 8),
        ("prod", "Artemis", "t", 8),
        ("prod", "artemis.rav", "t", 14),
        ("prod", "artemis", "Registry", 12),
        ("prod", "artemis", "measurement", 13),
        ("prod", "artemis", "mesaurements", 13),
    ],
)
def test_a_rule_under_nearly_the_tables_name_is_never_skipped_in_silence(
    config: Section, catalog: str, namespace: str, table: str, line: int
) -> None:
    with pytest.raises(PolicyError, match=rf"firnline\.yaml:{line}: .* is nearly the"):
        effective(config, catalog, tuple(namespace.split(".")), table)


@pytest.mark.parametrize("table", ["registry_2", "measurements1", "registers", "reg", "regsitrv"])
def test_another_name_is_another_table(config: Section, table: str) -> None:
    assert described(effective(config, "prod", ("artemis",), table)) == described(
        effective(config, "prod", ("artemis",), "t")
    )


def test_an_entry_of_its_own_tells_a_table_from_its_near_namesake() -> None:
    both = parse_policy("catalogs: {c: {namespaces: {n: {tables: {events: {keep: {last: 9}}, event: {}}}}}}")
    assert effective(both, "c", ("n",), "event").policy.is_native


def test_catalogs_are_known_without_regard_to_case(config: Section) -> None:
    assert described(effective(config, "PROD", ("other",), "t")) == described(
        effective(config, "prod", ("other",), "t")
    )
