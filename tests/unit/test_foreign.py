"""What others wrote reaches nobody's terminal as a command, and no password of an address reaches anybody."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline.errors import FirnlineError, StoreError
from firnline.foreign import HIDDEN, Veil, concealed, harmless, harmless_json, is_address, secrets_in
from firnline.plans.pages import Grid, Hint, Line, Page

SECRET = "hunter2"

ADDRESSES = {
    "http://me:hunter2@host:9000/bucket": "http://***@host:9000/bucket",
    "https://hunter2@host/x": "https://***@host/x",
    "http://hunter2:@host/x": "http://***@host/x",
    "redis://:hunter2@host:6379/0": "redis://***@host:6379/0",
    "rediss://me:hun/ter2@host": "rediss://***@host",
    "postgresql+psycopg://me:p@hunter2@host/db": "postgresql+psycopg://***@host/db",
    "sqlite+pysqlcipher://:hunter2@/lake.db?cipher=aes": "sqlite+pysqlcipher://***@/lake.db?cipher=aes",
    "postgresql://host/db?user=me&password=hunter2&x=1": "postgresql://host/db?user=me&password=***&x=1",
    "sqlite:///lake.db?key=hunter2": "sqlite:///lake.db?key=***",
    "https://host/x?X-Amz-Signature=hunter2 was refused": "https://host/x?X-Amz-Signature=*** was refused",
    "https://a.blob.core.windows.net/c?sig=hunter2&sv=1": "https://a.blob.core.windows.net/c?sig=***&sv=1",
    "Invalid endpoint: http://me:hunter2@[::1": "Invalid endpoint: http://***@[::1",
    "sqlserver://host;password=hunter2": "sqlserver://host;password=***",
}
OPEN = [
    "abfss://container@account.dfs.core.windows.net/path",
    "s3://bucket/a:b@c/d",
    "http://host:8181/a@b",
    "there is no table a@b:c, see https://example.org/a?page=1",
    "s3://bucket/key=1/x?y",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_password_in_an_address_is_hidden(address: str) -> None:
    assert concealed(address) == ADDRESSES[address]
    assert concealed(f"({address})").count(SECRET) == 0


@pytest.mark.parametrize("address", OPEN)
def test_what_only_looks_so_stays(address: str) -> None:
    assert concealed(address) == address


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_error_holds_one(address: str) -> None:
    problem = StoreError(f"{address!r} failed: {address}", hint=f"is {address} right?")
    assert SECRET not in f"{problem.message}{problem.hint}{problem!s}{problem!r}{problem.args}"


@pytest.mark.parametrize(
    "address",
    ["", "host", "http://", "http://[", "http://h:port", "http://h:0", "http://h:99999", "http://a b", "http://\ud800",
     "ftp://h", "me:hunter2@h", "http://h\n"],
)  # fmt: skip
def test_what_is_no_address_of_a_server_is_told(address: str) -> None:
    assert not is_address(address, "http", "https")


@pytest.mark.parametrize(
    "address", ["http://h", "http://me:pw@h:9000/x?y=z", "https://h/x", "http://[::1]:80", "http://käse.example"]
)
def test_addresses_of_servers_are_told(address: str) -> None:
    assert is_address(address, "http", "https")


def test_an_error_that_was_told_again_is_the_same() -> None:
    once = FirnlineError("http://me:hunter2@host failed")
    assert FirnlineError(once.message).message == once.message == f"http://{HIDDEN}@host failed"


# ---------------------------------------------------------------- terminals


HOSTILE = "\x1b[2J\x1b]0;owned\x07\r\x9b31m\u202egnp.exe\u2066\ud800\u200b\x7f\n"


def is_tame(text: str) -> bool:
    return not set(HOSTILE) & set(text) - set("[]2J0;owned31mgnp.exe")


def test_nothing_foreign_commands_a_terminal() -> None:
    assert harmless("a\x1b[2Jb\nc") == r"a\x1b[2Jb\nc"
    assert is_tame(harmless(HOSTILE))


def test_letters_of_all_people_stay() -> None:
    said = "tåblé 表 таблица جدول \N{FAMILY} e\u0301 \U0001f469\u200d\U0001f680"
    assert harmless(said) == said


def test_a_page_has_as_many_lines_as_it_was_made_of() -> None:
    page = Page((Line(HOSTILE), Grid(((HOSTILE, "x"), ("a", HOSTILE)), ("b", HOSTILE)), Hint(HOSTILE)))
    lines = page.to_text().split("\n")
    assert len(lines) == 1 + 3 + 1 + 1
    assert all(is_tame(line) for line in lines)


@given(st.recursive(st.text() | st.just(HOSTILE), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_json_stays_exact(value: object) -> None:
    for indent in (None, 2):
        said = harmless_json(json.dumps(value, ensure_ascii=False, indent=indent))
        assert json.loads(said) == value
        assert is_tame(said.replace("\n", ""))


@given(st.binary(max_size=6), st.text("abcXYZ019+/=%&é ", min_size=8, max_size=24), st.binary(max_size=6))
def test_a_secret_inside_of_base64_is_hidden_wherever_it_stands(before: bytes, secret: str, after: bytes) -> None:
    """But for the letters at its ends that its neighbours decide as well."""
    for encode in (b64encode, urlsafe_b64encode):
        text = encode(before + secret.encode() + after).decode()
        veiled = Veil([secret]).over(f"Basic {text}!").removeprefix("Basic ").removesuffix("!")
        rest = len(encode(before)) + len(encode(after)) + 4
        assert HIDDEN in veiled
        assert len(veiled.replace(HIDDEN, "")) <= rest


def test_of_a_credential_only_the_secret_is_one() -> None:
    named = [
        ("credential", "client:s3cret"),
        ("auth.oauth2.client_id", "client"),
        ("auth.oauth2.token_url", "http://h"),
    ]
    assert Veil(secrets_in(named)).over("the client at http://h has client:s3cret, s3cret") == (
        f"the client at http://h has {HIDDEN}, {HIDDEN}"
    )
