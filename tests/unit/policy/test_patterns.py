"""Entries by pattern: which tables they mean, what beats them, and that a misspelt name is told all the same."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline.errors import PolicyError
from firnline.policy.inherit import Effective, effective
from firnline.policy.parse import Section, parse_policy
from firnline.policy.policy import Setting
from firnline.policy.rules import KeepLast, Rule
from firnline.policy.written.entries import check_names, miswritten_patterns, sections_of_catalog

FILE = """\
keep: {last: 1}
catalogs:
  "*":
    keep: {last: 2}
    namespaces:
      "raw*":
        keep: {last: 3}
        tables:
          audit: {keep: {last: 4}}
  prod:
    keep: {last: 5}
    namespaces:
      "*": {keep: {last: 6}, tables: {"tmp_*": {grace: 1h}}}
      sales:
        keep: {last: 7}
        tables:
          "*": {keep: {last: 8}}
          "ord*": {keep: {last: 9}}
          "order?": {engine: spark}
          orders: {keep: {last: 10}}
          "[ab]_log": {keep: {last: 11}}
"""


@pytest.fixture(scope="module")
def config() -> Section:
    return parse_policy(FILE)


def last(found: Effective) -> int | None:
    rule = found.keep["last"].value
    assert isinstance(rule, KeepLast)
    return rule.count


@pytest.mark.parametrize(
    ("catalog", "namespace", "table", "expected"),
    [
        ("test", ("other",), "t", 2),
        ("test", ("raw_1",), "t", 3),
        ("test", ("raw_1",), "audit", 4),
        ("prod", ("other",), "t", 6),
        ("prod", ("raw_1",), "t", 6),
        ("prod", ("raw_1",), "audit", 4),
        ("prod", ("sales",), "x", 8),
        ("prod", ("sales",), "ordinary", 9),
        ("prod", ("sales",), "orders", 10),
        ("prod", ("sales",), "a_log", 11),
        ("prod", ("sales",), "c_log", 8),
        ("prod", ("sales", "deep"), "orders", 7),
        ("prod", (), "t", 6),
        ("PROD", ("sales",), "orders", 10),
    ],
)
def test_the_most_specific_entry_counts(
    config: Section, catalog: str, namespace: tuple[str, ...], table: str, expected: int
) -> None:
    """A pattern of `prod` beats one of all catalogs; an entry of an outer namespace beats a pattern that matches the
    inner one as well; and what a pattern says of tables is no namespace's below.
    """
    assert last(effective(config, catalog, namespace, table)) == expected


def test_each_key_comes_from_its_own_entry_with_its_line(config: Section) -> None:
    found = effective(config, "prod", ("sales",), "orders")
    assert (found.engine.value, str(found.engine.source)) == ("spark", "firnline.yaml:19, table order?")
    before = [str(each.source) for each in found.keep["last"].overridden()]
    assert before == [
        "firnline.yaml:18, table ord*",
        "firnline.yaml:17, table *",
        "firnline.yaml:15, namespace sales",
        "firnline.yaml:13, namespace *",
        "firnline.yaml:11, catalog prod",
        "firnline.yaml:4, catalog *",
        "firnline.yaml:1, global",
    ]


def test_a_table_knows_itself_better_than_a_pattern_and_its_own_entry_beats_both(config: Section) -> None:
    properties = {"firnline.keep.last": "99"}
    assert last(effective(config, "prod", ("sales",), "ordinary", properties=properties)) == 99
    assert last(effective(config, "test", ("raw_1",), "audit", properties=properties)) == 99
    assert last(effective(config, "prod", ("sales",), "orders", properties=properties)) == 10


def test_a_table_by_its_location_has_no_names(config: Section) -> None:
    assert last(effective(config, None, (), "/data/orders")) == 1


def test_a_name_with_signs_of_patterns_is_itself_first() -> None:
    config = parse_policy('catalogs: {c: {namespaces: {n: {tables: {"a*": {grace: 1h}, "a[*]": {grace: 2h}}}}}}')
    assert str(effective(config, "c", ("n",), "a*").grace.source) == "firnline.yaml:1, table a*"
    assert str(effective(config, "c", ("n",), "ab").grace.source) == "firnline.yaml:1, table a*"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('catalogs: {prd: {}, "*": {}}', "prd"),
        ('catalogs: {prod: {namespaces: {salse: {}, "*": {}}}}', "salse"),
        ('catalogs: {prod: {namespaces: {sales: {tables: {order: {}, "*": {}}}}}}', "order"),
        ('catalogs: {prod: {namespaces: {"*": {tables: {order: {}}}}}}', "order"),
        ('catalogs: {"*": {namespaces: {"s*": {tables: {order: {}}}}}}', "order"),
    ],
)
def test_a_pattern_does_not_hide_a_slip(text: str, name: str) -> None:
    with pytest.raises(PolicyError, match=f"'{name}' is nearly"):
        effective(parse_policy(text), "prod", ("sales",), "orders")


def test_an_entry_of_its_own_anywhere_settles_that_no_slip_was_meant() -> None:
    text = 'catalogs: {prod: {namespaces: {"*": {tables: {order: {}}}, sales: {tables: {orders: {grace: 1h}}}}}}'
    assert effective(parse_policy(text), "prod", ("sales",), "orders").grace.value == 3_600_000


def test_a_plain_namespace_beats_what_stands_below_a_pattern_of_namespaces() -> None:
    text = (
        'catalogs: {prod: {namespaces: {"*": {tables: {"ord*": {grace: 1h}, lines: {grace: 3h}}}, sales: {grace: 2h}}}}'
    )
    for table in ("orders", "lines"):
        found = effective(parse_policy(text), "prod", ("sales",), table).grace
        assert (found.value, str(found.source)) == (7_200_000, "firnline.yaml:1, namespace sales")
    assert effective(parse_policy(text), "prod", ("other",), "orders").grace.value == 3_600_000


def test_an_entry_below_a_pattern_does_not_hide_a_slip_in_the_namespace_itself() -> None:
    text = 'catalogs: {prod: {namespaces: {"s*": {tables: {orders: {}}}, sales: {tables: {ordres: {grace: 9h}}}}}}'
    with pytest.raises(PolicyError, match="'ordres' is nearly"):
        effective(parse_policy(text), "prod", ("sales",), "orders")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('catalogs: {prod: {namespaces: {sales: {tables: {"Ord*": {}}}}}}', ["'Ord*' is no pattern of the table"]),
        ('catalogs: {prod: {namespaces: {"SAL*": {}}}}', ["'SAL*' is no pattern of the namespace 'sales'"]),
        ('catalogs: {"PR*": {namespaces: {"*": {tables: {"ORDERS*": {}}}}}}', ["'ORDERS*' is no pattern of the table"]),
        ('catalogs: {prod: {namespaces: {sales: {tables: {"Ord*": {}, "ord*": {}}}}}}', []),
        ('catalogs: {prod: {namespaces: {sales: {tables: {"Ord*": {}, orders: {}}}}}}', []),
        ('catalogs: {prod: {namespaces: {sales: {tables: {"Inv*": {}}}}}}', []),
    ],
)
def test_a_pattern_that_matches_but_for_its_case_is_told(text: str, said: list[str]) -> None:
    notes = miswritten_patterns(parse_policy(text), "prod", ("sales",), "orders")
    assert len(notes) == len(said)
    assert all(words in note for words, note in zip(said, notes, strict=True))


TABLES = [(("sales",), "orders"), (("sales",), "refunds"), (("raw", "eu"), "events")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('catalogs: {"dev*": {}}', "no catalog is named like 'dev*'"),
        ('catalogs: {prod: {namespaces: {"sal?": {}}}}', "no namespace is named like 'sal?' (near are sales)"),
        ('catalogs: {prod: {namespaces: {sales: {tables: {"order_*": {}}}}}}', "like 'order_*' (near are orders)"),
        ('catalogs: {prod: {namespaces: {"*": {tables: {ordes: {}}}}}}', "no table 'ordes' (did you mean 'orders'?)"),
        ('catalogs: {prod: {namespaces: {"raw*": {tables: {orders: {}}}}}}', "no table 'orders'"),
        ('catalogs: {prod: {namespaces: {sales: {tables: {"ord.*": {}}}}}}', "no table is named like 'ord.*'"),
    ],
)
def test_what_means_nothing_is_told_with_near_names(text: str, said: str) -> None:
    with pytest.raises(PolicyError) as refused:
        check_names(parse_policy(text), ["prod"], lambda name: TABLES)
    assert said in refused.value.message
    assert refused.value.message.startswith("firnline.yaml:1: ")


@pytest.mark.parametrize(
    "text",
    [
        'catalogs: {"pr*": {namespaces: {"r*.eu": {tables: {"ev*": {}}}, "raw": {}}}}',
        'catalogs: {"*": {namespaces: {"*": {tables: {"*": {}}}}}}',
        'catalogs: {"PROD": {namespaces: {sales: {tables: {"[or]*": {}, refunds: {}}}}}}',
        'catalogs: {"*": {namespaces: {"*": {tables: {refunds: {}, events: {}}}}}}',
    ],
)
def test_what_means_something_is_sound(text: str) -> None:
    check_names(parse_policy(text), ["prod"], lambda name: TABLES)


def test_every_table_of_an_empty_lake_is_none_and_no_mistake() -> None:
    check_names(parse_policy('catalogs: {"*": {namespaces: {"*": {tables: {"*": {}}}}}}'), ["prod"], lambda name: ())


def test_a_bare_star_is_told_how_to_be_quoted() -> None:
    with pytest.raises(PolicyError) as refused:
        parse_policy("catalogs:\n  *: {}\n")
    assert refused.value.hint == 'quote a pattern: "*"'


WORDS = st.text(alphabet="12", min_size=1, max_size=3)
KEYS = st.text(alphabet="12*?", min_size=1, max_size=3)
"""Of digits: names that differ in one are brothers, and never a slip."""


@given(keys=st.lists(KEYS, unique=True, max_size=6), name=WORDS)
def test_settings_of_tables_are_those_of_the_last_pattern_or_of_the_name_itself(keys: list[str], name: str) -> None:
    """The rule in one line, against what the reader of files does."""
    entries = {key: Section(settings={"engine": _set(key)}) for key in keys}
    config = Section(inside={"c": Section(inside={"n": Section(inside=entries)})})
    meant = [key for key in keys if fnmatchcase(name, key)]
    expected = name if name in keys else (meant[-1] if meant else "auto")
    assert effective(config, "c", ("n",), name).engine.value == expected


@given(keys=st.lists(KEYS, unique=True, max_size=6), name=WORDS)
def test_a_catalog_has_all_that_is_said_of_its_name(keys: list[str], name: str) -> None:
    config = Section(inside={key: Section({"last": _rule(place)}) for place, key in enumerate(keys, 1)})
    found = [each.keep["last"].value for each in sections_of_catalog(config, name)]
    meant = [key for key in keys if fnmatchcase(name, key)]
    ordered = sorted(meant, key=lambda key: key == name)
    assert found == [KeepLast(keys.index(key) + 1) for key in ordered]


def _set(value: str) -> Setting[str]:
    return parse_policy("engine: auto").settings["engine"].__class__(value, _rule(1).source)


def _rule(count: int) -> Setting[Rule | None]:
    return parse_policy(f"keep: {{last: {count}}}").keep["last"]
