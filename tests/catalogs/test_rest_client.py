"""The REST client against a server of the test's own: signing in, paging, namespaces, vended settings, failures."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from firnline import answering
from firnline.catalogs.commits import proof_of
from firnline.catalogs.rest.catalog import RestCatalog
from firnline.catalogs.rest.commits import RestCommits
from firnline.catalogs.rest.placing import PlacingRestCatalog
from firnline.errors import (
    AccessDenied,
    BadCredentials,
    ExpiredCredentials,
    FirnlineError,
    NoSuchTable,
    StoreError,
    Unreachable,
    UnreadableMetadata,
    UnsupportedFormat,
    UsageError,
)
from firnline.ports.catalogs import Attempt, SwapOutcome, TableName, Version
from firnline.testing.catalogs import step_from

from .lakes import two_snapshots

SECRET = "hunter2-very-secret"
EVENTS = TableName("lake", ("eu", "west"), "events")
Answer = tuple[int, Any]
"""A status, and what is sent as JSON, or as it is where it is bytes."""


@dataclass
class Desk:
    """What the server knows, what it wants to see, and what it was asked."""

    url: str = ""
    config: dict[str, Any] = field(default_factory=dict)
    tables: dict[tuple[str, ...], list[str]] = field(default_factory=lambda: {("eu", "west"): ["events", "orders"]})
    tokens: list[str] = field(default_factory=list)
    loaded: dict[str, Any] = field(default_factory=lambda: {"metadata-location": "s3://b/t/metadata/1.metadata.json"})
    rules: list[Callable[[str, str], Answer | None]] = field(default_factory=list)
    heads: dict[str, str] = field(default_factory=dict)
    asked: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    sent: list[Any] = field(default_factory=list)
    issued: int = 0
    redirects: bool = False
    lasts_s: int = 3600
    page: int = 1000

    def answer(self, verb: str, path: str, query: dict[str, str], body: str, headers: dict[str, str]) -> Answer:
        self.asked.append((verb, path, headers))
        if headers.get("content-type") == "application/json" and body:
            self.sent.append(json.loads(body))
        if path.endswith("/oauth/tokens"):
            return (307, {}) if self.redirects else self._token(parse_qs(body))
        if self.tokens and headers.get("authorization") != f"Bearer {self.tokens[-1]}":
            return problem(401, "NotAuthorizedException", f"bad token {headers.get('authorization')}")
        for rule in self.rules:
            if (said := rule(verb, path)) is not None:
                return said
        if path.endswith("/v1/config"):
            return 200, {"defaults": {}, "overrides": {}, **self.config}
        return self._resource(path, query)

    def _token(self, form: dict[str, list[str]]) -> Answer:
        if form["client_secret"] != [SECRET]:
            return 401, {"error": "invalid_client", "error_description": f"not {form['client_secret']}"}
        self.issued += 1
        self.tokens.append(f"token-{self.issued}-{SECRET}")
        return 200, {"access_token": self.tokens[-1], "token_type": "bearer", "expires_in": self.lasts_s}

    def _resource(self, path: str, query: dict[str, str]) -> Answer:
        parts = [unquote(part) for part in path.strip("/").split("/")]
        parts = parts[parts.index("namespaces") :]
        if len(parts) == 1:
            parent = tuple(query["parent"].split("\x1f")) if query.get("parent") else ()
            below = {levels[: len(parent) + 1] for levels in self.tables if levels[: len(parent)] == parent}
            return self._paged("namespaces", [list(each) for each in sorted(below) if len(each) > len(parent)], query)
        levels = tuple(parts[1].split("\x1f"))
        if len(parts) == 2:
            return (200, {}) if levels in self.tables else problem(404, "NoSuchNamespaceException", "no namespace")
        if len(parts) == 3:
            names = [{"namespace": list(levels), "name": name} for name in self.tables.get(levels, ())]
            return self._paged("identifiers", names, query)
        if parts[3] not in self.tables.get(levels, ()):
            return problem(404, "NoSuchTableException", f"no table {parts[3]}")
        return 200, self.loaded

    def _paged(self, what: str, every: list[Any], query: dict[str, str]) -> Answer:
        if "pageToken" not in query:
            return 200, {what: every}
        start = int(query["pageToken"] or 0)
        following = start + self.page if start + self.page < len(every) else None
        return 200, {what: every[start : start + self.page], "next-page-token": following and str(following)}


def problem(code: int, kind: str, message: str) -> Answer:
    return code, {"error": {"code": code, "type": kind, "message": message}}


@pytest.fixture
def desk() -> Iterator[Desk]:
    desk = Desk()

    class Handler(BaseHTTPRequestHandler):
        def handle_one(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            parts = urlsplit(self.path)
            query = {name: each[0] for name, each in parse_qs(parts.query, keep_blank_values=True).items()}
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, said = desk.answer(self.command, parts.path, query, body, headers)
            if status == 0:
                return  # the answer never comes
            data = said if isinstance(said, bytes) else json.dumps(said).encode()
            self.send_response(status)
            for name, value in desk.heads.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_DELETE = handle_one

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    desk.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=[0.02], daemon=True)
    thread.start()
    yield desk
    server.shutdown()
    server.server_close()
    thread.join()


def catalog_at(desk: Desk, **properties: str) -> RestCatalog:
    return RestCatalog(
        "lake", {"uri": desk.url, **{name.replace("_", "-"): value for name, value in properties.items()}}
    )


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries do not wait."""
    monkeypatch.setattr("firnline.catalogs.rest.http.time.sleep", lambda _: None)


# ---------------------------------------------------------------- configuration and names


def test_what_the_server_offers_counts_least_and_what_it_insists_on_most(desk: Desk) -> None:
    desk.config = {"defaults": {"a": "server", "b": "server"}, "overrides": {"c": "server", "prefix": "ws/1"}}
    settings = catalog_at(desk, b="mine", c="mine").settings
    assert {name: settings.properties[name] for name in "abc"} == {"a": "server", "b": "mine", "c": "server"}
    assert settings.prefix == "/ws/1"


def test_the_warehouse_is_asked_for_and_the_prefix_used(desk: Desk) -> None:
    desk.config = {"overrides": {"prefix": "ws"}}
    catalog = catalog_at(desk, warehouse="mine")
    assert catalog.locate(EVENTS) == "s3://b/t/metadata/1.metadata.json"
    assert [path for _, path, _ in desk.asked] == ["/v1/config", "/v1/ws/namespaces/eu%1Fwest/tables/events"]
    assert desk.asked[1][2]["x-iceberg-access-delegation"] == "vended-credentials"


def test_headers_are_sent_with_every_request(desk: Desk) -> None:
    catalog_at(desk, **{"header.X-Team": "ice"}).locate(EVENTS)
    assert {headers["x-team"] for _, _, headers in desk.asked} == {"ice"}


def test_namespaces_of_several_levels_are_listed_over_pages(desk: Desk) -> None:
    desk.page = 2
    desk.tables = {("a",): ["t1", "t2", "t3"], ("a", "b"): ["u"], ("a", "b", "c"): ["v"], ("d",): [], ("e",): ["w"]}
    listed = [str(each) for each in catalog_at(desk, **{"rest-page-size": "2"}).tables()]
    assert listed == ["lake.a.t1", "lake.a.t2", "lake.a.t3", "lake.a.b.u", "lake.a.b.c.v", "lake.e.w"]
    assert [str(each) for each in catalog_at(desk).tables()] == listed


def test_a_server_that_never_turns_the_page_is_not_asked_for_ever(desk: Desk) -> None:
    page = {"namespaces": [], "next-page-token": "again"}
    desk.rules.append(lambda verb, path: (200, page) if path.endswith("/namespaces") else None)
    with pytest.raises(UnreadableMetadata, match="the same next page"):
        list(catalog_at(desk).tables())


def test_pages_that_lead_in_a_circle_are_not_asked_for_ever(desk: Desk) -> None:
    tokens = iter("abab")
    page = {"namespaces": []}
    desk.rules.append(
        lambda verb, path: (200, {**page, "next-page-token": next(tokens)}) if "config" not in path else None
    )
    with pytest.raises(UnreadableMetadata, match="the same next page"):
        list(catalog_at(desk).tables())


def test_a_table_that_is_listed_twice_is_one_table(desk: Desk) -> None:
    desk.tables = {("a",): ["t", "t"]}
    assert [str(each) for each in catalog_at(desk).tables()] == ["lake.a.t"]


@pytest.mark.parametrize("said", [b"<html>sign in", b"[]", b"[" * 100_000, {}], ids=["page", "list", "deep", "nothing"])
def test_what_is_no_configuration_does_not_drop_the_prefix(desk: Desk, said: Any) -> None:
    """Without it the server would be asked for the tables of another warehouse."""
    desk.rules.append(lambda verb, path: (200, said) if path.endswith("/config") else None)
    with pytest.raises(UnreadableMetadata, match="is no configuration"):
        list(catalog_at(desk).tables())


def test_an_answer_that_bursts_is_none(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("firnline.inflate.BELIEVED", 1 << 20)
    _ = (catalog := catalog_at(desk)).settings
    desk.heads = {"Content-Encoding": "gzip"}
    desk.rules.append(lambda verb, path: (200, gzip.compress(b" " * (4 << 20))))
    with pytest.raises(Unreachable, match="its answer is larger than"):
        list(catalog.tables())


@pytest.mark.parametrize("ends", ["/namespaces", "west/tables"])
@pytest.mark.parametrize(
    "body",
    [
        {},
        {"namespaces": None, "identifiers": None},
        {"namespaces": "eu", "identifiers": "events"},
        {"namespaces": ["eu"], "identifiers": ["events"]},
        {"namespaces": [[]], "identifiers": [{}]},
        {"namespaces": [["eu", 1]], "identifiers": [{"name": 1}]},
        {"namespaces": [{"eu": 1}], "identifiers": [["eu", "west", "events"]]},
    ],
    ids=str,
)
def test_what_is_no_listing_is_not_an_empty_one(desk: Desk, ends: str, body: dict[str, Any]) -> None:
    """A gateway that wants a login says so with 200 and a page: no table would be there, and their files nobody's."""
    desk.rules.append(lambda verb, path: (200, body) if path.endswith(ends) else None)
    with pytest.raises(UnreadableMetadata, match="is no listing of"):
        list(catalog_at(desk).tables())


def test_another_separator_is_used_where_the_server_says_so(desk: Desk) -> None:
    desk.config = {"overrides": {"namespace-separator": "%2E"}}
    with pytest.raises(NoSuchTable):
        catalog_at(desk).locate(TableName("lake", ("x", "y"), "t"))
    assert any(path == "/v1/namespaces/x.y/tables/t" for _, path, _ in desk.asked)


def test_an_unknown_table_has_near_names(desk: Desk) -> None:
    with pytest.raises(NoSuchTable) as missing:
        catalog_at(desk).locate(TableName("lake", ("eu", "west"), "evnts"))
    assert "lake.eu.west.events" in missing.value.hint


def test_a_table_that_is_listed_and_not_found_was_not_dropped(desk: Desk) -> None:
    desk.rules.append(lambda verb, path: problem(404, "x", "no") if path.endswith("/tables/events") else None)
    with pytest.raises(UnreadableMetadata, match=r"lists lake\.eu\.west\.events"):
        catalog_at(desk).locate(EVENTS)


def test_a_namespace_that_is_listed_and_not_found_hides_no_tables(desk: Desk) -> None:
    missing = problem(404, "NoSuchNamespaceException", "no")
    desk.rules.append(lambda verb, path: missing if path.endswith("west/tables") else None)
    with pytest.raises(UnreadableMetadata, match=r"lists the namespace eu\.west"):
        list(catalog_at(desk).tables())


def test_a_namespace_that_was_dropped_since_it_was_listed_holds_nothing(desk: Desk) -> None:
    def dropped(verb: str, path: str) -> Answer | None:
        if not path.endswith("west/tables"):
            return None
        desk.tables = {("d",): ["t"]}
        return problem(404, "NoSuchNamespaceException", "no")

    desk.tables[("d",)] = ["t"]
    desk.rules.append(dropped)
    assert [str(each) for each in catalog_at(desk).tables()] == ["lake.d.t"]


def test_levels_and_names_with_dots_are_sent_as_they_are(desk: Desk) -> None:
    desk.tables = {("a.b",): ["c.d"], ("a", "b"): ["c.d"]}
    catalog = catalog_at(desk)
    listed = list(catalog.tables())
    assert [str(each) for each in listed] == ['lake.a.b."c.d"', 'lake."a.b"."c.d"']
    assert all(catalog.locate(each) for each in listed)
    assert {path for _, path, _ in desk.asked if "/tables/" in path} == {
        "/v1/namespaces/a%1Fb/tables/c.d",
        "/v1/namespaces/a.b/tables/c.d",
    }


@pytest.mark.parametrize("loaded", [{}, {"metadata-location": None}, {"metadata-location": ""}])
def test_a_table_whose_metadata_lies_nowhere_is_refused(desk: Desk, loaded: dict[str, Any]) -> None:
    desk.loaded = loaded
    with pytest.raises(UnreadableMetadata, match="does not say where"):
        catalog_at(desk).locate(EVENTS)


def test_the_credential_of_the_longest_prefix_is_vended(desk: Desk) -> None:
    desk.loaded |= {
        "config": {"s3.region": "eu", "s3.access-key-id": "general"},
        "storage-credentials": [
            {"prefix": "s3://b/", "config": {"s3.access-key-id": "bucket"}},
            {"prefix": "s3://b/t/", "config": {"s3.access-key-id": "table"}},
            {"prefix": "s3://b/t/other/", "config": {"s3.access-key-id": "other"}},
        ],
    }
    assert catalog_at(desk).vended(EVENTS) == {"s3.region": "eu", "s3.access-key-id": "table"}


@pytest.mark.parametrize("said", [5, "s3", [5], {"s3://b/": 1}, [{"prefix": "s3://b/", "config": 5}]], ids=str)
def test_credentials_that_make_no_sense_are_none(desk: Desk, said: Any) -> None:
    desk.loaded["storage-credentials"] = said
    assert catalog_at(desk).vended(EVENTS) == {}


def test_settings_of_stores_that_the_server_has_for_all_tables_are_used(desk: Desk) -> None:
    desk.config = {"defaults": {"s3.endpoint": "a", "s3.region": "a"}, "overrides": {"s3.path-style-access": "true"}}
    desk.loaded |= {"config": {"s3.access-key-id": "table"}}
    said = catalog_at(desk, **{"s3.region": "mine", "token": SECRET}).vended(EVENTS)
    assert said == {"s3.endpoint": "a", "s3.path-style-access": "true", "s3.access-key-id": "table"}


# ---------------------------------------------------------------- signing in


def test_a_token_is_sent_and_one_that_ended_is_told_from_a_wrong_one(desk: Desk) -> None:
    desk.tokens = ["good"]
    with pytest.raises(BadCredentials):
        catalog_at(desk, token="bad").locate(EVENTS)
    catalog = catalog_at(desk, token="good")
    catalog.locate(EVENTS)
    desk.tokens.append("newer")
    with pytest.raises(ExpiredCredentials) as ended:
        catalog.locate(EVENTS)
    assert "new token" in ended.value.hint


def test_a_credential_gets_a_token_and_a_new_one_when_it_is_refused(desk: Desk) -> None:
    catalog = catalog_at(desk, credential=f"me:{SECRET}", scope="all", audience="lake")
    catalog.locate(EVENTS)
    issued = desk.issued
    desk.tokens.append("somebody revoked it")
    catalog.locate(EVENTS)
    assert desk.issued == issued + 1


def test_a_token_is_renewed_before_it_ends(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("firnline.catalogs.rest.tokens.time.monotonic", lambda: now[0])
    catalog = catalog_at(desk, credential=f"me:{SECRET}")
    catalog.locate(EVENTS)
    issued = desk.issued
    now[0] += 3600 - 61
    catalog.locate(EVENTS)
    assert desk.issued == issued
    now[0] += 2
    catalog.locate(EVENTS)
    assert desk.issued == issued + 1


def test_another_server_may_give_the_token(desk: Desk) -> None:
    where = f"{desk.url}/elsewhere/oauth/tokens"
    catalog_at(desk, credential=SECRET, **{"oauth2-server-uri": where}).locate(EVENTS)
    assert ("POST", "/elsewhere/oauth/tokens") in [(verb, path) for verb, path, _ in desk.asked]


def test_a_secret_is_not_sent_on_to_another_address(desk: Desk) -> None:
    """A redirect of status 307 is followed with all that was sent, by most clients."""
    desk.heads = {"Location": f"{desk.url}/another"}
    desk.rules.append(lambda verb, path: (200, {"access_token": "x"}) if path.endswith("/another") else None)
    desk.redirects = True
    with pytest.raises(Unreachable, match="it sends to another address"):
        catalog_at(desk, credential=f"me:{SECRET}").locate(EVENTS)
    assert {path for _, path, _ in desk.asked} == {"/v1/oauth/tokens"}


def test_a_wrong_credential_is_said(desk: Desk) -> None:
    with pytest.raises(BadCredentials, match="refused the credential"):
        catalog_at(desk, credential="me:wrong-secret").locate(EVENTS)


def test_basic_sign_in(desk: Desk) -> None:
    catalog_at(desk, **{"auth.type": "basic", "auth.basic.username": "me", "auth.basic.password": "x"}).locate(EVENTS)
    assert {headers["authorization"] for _, _, headers in desk.asked} == {"Basic bWU6eA=="}


@pytest.mark.parametrize("properties", [{"rest.sigv4-enabled": "true"}, {"auth.type": "google"}])
def test_what_firnline_cannot_sign_is_refused(desk: Desk, properties: dict[str, str]) -> None:
    with pytest.raises(UnsupportedFormat):
        catalog_at(desk, **properties)


def test_a_netrc_does_not_take_the_place_of_the_token(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password other\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    desk.tokens = ["good"]
    assert catalog_at(desk, token="good").locate(EVENTS)


def test_secrets_are_never_shown(desk: Desk) -> None:
    """The server's error quotes the header; the exception, its causes and the catalog's own pictures do not."""
    desk.tokens = ["good"]
    catalog = catalog_at(desk, token=SECRET, **{"header.X-Key": "another-secret"})
    with pytest.raises(BadCredentials) as refused:
        catalog.locate(EVENTS)
    assert "***" in refused.value.message
    copied = pickle.loads(pickle.dumps(catalog))
    for text in (refused.value.message, refused.value.hint, repr(catalog), repr(copied), repr(catalog._given)):
        assert SECRET not in text
        assert "another-secret" not in text


def test_a_password_in_the_address_is_not_shown() -> None:
    catalog = RestCatalog("lake", {"uri": f"http://me:{SECRET}@127.0.0.1:1"})
    with pytest.raises(Unreachable) as away:
        catalog.locate(EVENTS)
    assert SECRET not in str(away.value) + repr(catalog)


# ---------------------------------------------------------------- failures


def test_a_commit_to_a_table_that_was_dropped_says_so(desk: Desk) -> None:
    commits, attempt = prepared(catalog_at(desk))
    desk.tables = {("eu", "west"): ["orders"]}
    desk.rules.append(lambda verb, path: problem(404, "NoSuchTableException", "gone") if verb == "POST" else None)
    with pytest.raises(NoSuchTable):
        commits.commit(attempt)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (problem(403, "ForbiddenException", "no"), AccessDenied),
        (problem(419, "AuthenticationTimeoutException", "late"), ExpiredCredentials),
        (problem(400, "BadRequestException", "what?"), UsageError),
        (problem(500, "ServerError", "oh"), StoreError),
        (problem(503, "SlowDown", "busy"), StoreError),
    ],
)
def test_each_failure_is_its_own_error(desk: Desk, answer: Answer, error: type[FirnlineError]) -> None:
    catalog = catalog_at(desk)
    _ = catalog.settings
    desk.rules.append(lambda verb, path: answer)
    with pytest.raises(error) as failed:
        catalog.locate(EVENTS)
    assert answer[1]["error"]["message"] in failed.value.message
    assert failed.value.hint


def test_a_server_that_is_busy_for_a_moment_is_asked_again(desk: Desk) -> None:
    desk.heads = {"Retry-After": "\xb2"}  # a digit of its own kind
    busy = iter([503, 429, 502])
    desk.rules.append(lambda verb, path: problem(code, "Busy", "wait") if (code := next(busy, None)) else None)
    assert catalog_at(desk).locate(EVENTS)


def test_nobody_there_is_unreachable() -> None:
    with pytest.raises(Unreachable) as away:
        RestCatalog("lake", {"uri": "http://127.0.0.1:1"}).locate(EVENTS)
    assert "127.0.0.1:1" in away.value.message
    assert "uri" in away.value.hint


# ---------------------------------------------------------------- the three outcomes of a commit


def prepared(catalog: RestCatalog) -> tuple[RestCommits, Attempt]:
    commits = RestCommits(catalog)
    base = Version("s3://b/t/metadata/1.metadata.json", two_snapshots("s3://b/t"))
    return commits, commits.prepare(EVENTS, step_from(base, "me"))


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ((200, {}), SwapOutcome.UNKNOWN),
        ((200, b"{half"), SwapOutcome.UNKNOWN),
        ((200, b"[" * 100_000), SwapOutcome.UNKNOWN),
        ((200, {"metadata-location": "s3://b/t/metadata/2.metadata.json"}), SwapOutcome.UNKNOWN),
        ((204, {}), SwapOutcome.UNKNOWN),
        ((200, {"login": "https://example.org"}), SwapOutcome.UNKNOWN),
        (problem(409, "CommitFailedException", "moved"), SwapOutcome.LOST),
        (problem(500, "CommitStateUnknownException", "?"), SwapOutcome.UNKNOWN),
        (problem(502, "BadGateway", "?"), SwapOutcome.UNKNOWN),
        (problem(503, "ServiceUnavailable", "?"), SwapOutcome.UNKNOWN),
        (problem(504, "Timeout", "?"), SwapOutcome.UNKNOWN),
        (problem(408, "RequestTimeout", "a proxy's word"), SwapOutcome.UNKNOWN),
        (problem(520, "Unknown", "a proxy's word"), SwapOutcome.UNKNOWN),
        (problem(524, "OriginTimeout", "a proxy's word"), SwapOutcome.UNKNOWN),
        ((0, {}), SwapOutcome.UNKNOWN),
    ],
)
def test_a_commit_has_three_outcomes_and_is_sent_once(desk: Desk, answer: Answer, outcome: SwapOutcome) -> None:
    commits, attempt = prepared(catalog_at(desk))
    desk.rules.append(lambda verb, path: answer if verb == "POST" else None)
    assert commits.commit(attempt) is outcome
    assert [verb for verb, _, _ in desk.asked].count("POST") == 1


@pytest.mark.parametrize(
    ("edit", "outcome"),
    [
        ({}, SwapOutcome.DONE),
        ({"table-uuid": "another table"}, SwapOutcome.UNKNOWN),
        ({"table-uuid": None}, SwapOutcome.UNKNOWN),
        ({"properties": {}}, SwapOutcome.UNKNOWN),
        ({"properties": "none"}, SwapOutcome.UNKNOWN),
    ],
    ids=str,
)
def test_a_good_answer_counts_if_the_table_in_it_is_as_it_shall_be(
    desk: Desk, edit: dict[str, Any], outcome: SwapOutcome
) -> None:
    """A server that answers with another table, or with the one of before, has committed nothing yet."""
    commits, attempt = prepared(catalog_at(desk))
    told = {"metadata-location": "s3://b/t/metadata/2.metadata.json", "metadata": {**attempt.step.document, **edit}}
    desk.rules.append(lambda verb, path: (200, told) if verb == "POST" else None)
    assert commits.commit(attempt) is outcome


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (problem(400, "BadRequestException", "no such update"), UsageError),
        (problem(401, "NotAuthorizedException", "who?"), BadCredentials),
        (problem(403, "ForbiddenException", "read only"), AccessDenied),
        (problem(404, "NoSuchTableException", "gone, although it is listed"), UnreadableMetadata),
        (problem(429, "TooManyRequests", "slow"), StoreError),
    ],
)
def test_a_refused_commit_is_an_error_and_not_unknown(desk: Desk, answer: Answer, error: type[FirnlineError]) -> None:
    commits, attempt = prepared(catalog_at(desk))
    desk.rules.append(lambda verb, path: answer if verb == "POST" else None)
    with pytest.raises(error):
        commits.commit(attempt)


def test_an_attempt_that_was_made_in_the_servers_own_database_is_read_back_too(desk: Desk) -> None:
    commits, base = RestCommits(catalog_at(desk)), "s3://b/t/metadata/1.metadata.json"
    proof = proof_of(base, "s3://b/t/metadata/2.metadata.json", b"{}")
    here = Version(base, two_snapshots("s3://b/t"))
    assert not commits.landed(proof, here)
    assert commits.fence([proof], here) is not None
    there = Version("s3://b/t/metadata/2.metadata.json", here.document)
    assert commits.landed(proof, there)
    assert commits.fence([proof], there) is None


def test_a_token_that_ends_in_the_middle_is_renewed_and_the_commit_sent_again(desk: Desk) -> None:
    commits, attempt = prepared(catalog_at(desk, credential=f"me:{SECRET}"))
    _ = commits._catalog.settings
    desk.tokens.append("revoked")
    told = {"metadata-location": NEXT, "metadata": attempt.step.document}
    desk.rules.append(lambda verb, path: (200, told) if verb == "POST" and "tables" in path else None)
    assert commits.commit(attempt) is SwapOutcome.DONE


def test_a_server_that_nobody_reached_got_nothing(desk: Desk) -> None:
    commits, attempt = prepared(catalog_at(desk))
    _ = commits._catalog.http
    vars(commits._catalog)["settings"] = commits._catalog.settings.merged({}, {"uri": "http://127.0.0.1:1"})
    del vars(commits._catalog)["http"]
    with pytest.raises(Unreachable):
        commits.commit(attempt)


@pytest.fixture
def encrypted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Returns the address of a server that reads one request over TLS, then says what is no TLS."""
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1"]
    made += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(tmp_path / "key"), "-out", str(tmp_path / "cert")]
    subprocess.run(made, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert", tmp_path / "key")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=_break_after_request, args=(listening, context), daemon=True)
        thread.start()
        address = f"https://127.0.0.1:{listening.getsockname()[1]}"
        monkeypatch.setitem(answering._asked, address, (0.0, ""))  # it takes one connection, and not a second one
        yield address
        thread.join()


def without_asking(properties: dict[str, str]) -> RestCatalog:
    catalog = RestCatalog("lake", properties)
    vars(catalog)["settings"] = catalog._given
    return catalog


def test_encryption_that_breaks_after_the_commit_was_sent_leaves_it_unknown(encrypted: str, tmp_path: Path) -> None:
    commits, attempt = prepared(without_asking({"uri": encrypted, "ssl.cabundle": str(tmp_path / "cert")}))
    assert commits.commit(attempt) is SwapOutcome.UNKNOWN


def test_a_certificate_that_is_not_known_stops_before_anything_is_sent(encrypted: str) -> None:
    commits, attempt = prepared(without_asking({"uri": encrypted}))
    with pytest.raises(Unreachable, match="certificate verify failed"):
        commits.commit(attempt)


def _break_after_request(listening: socket.socket, context: ssl.SSLContext) -> None:
    accepted, _ = listening.accept()
    try:
        with context.wrap_socket(accepted, server_side=True) as speaking:
            speaking.recv(65536)
            plain = socket.socket(fileno=os.dup(speaking.fileno()))
            with plain:
                plain.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 4)
    except ssl.SSLError:
        accepted.close()


# ---------------------------------------------------------------- placing tables

NOW, NEXT = "s3://b/t/metadata/1.metadata.json", "s3://b/t/metadata/2.metadata.json"


def placing_at(desk: Desk) -> PlacingRestCatalog:
    return PlacingRestCatalog("lake", {"uri": desk.url})


def registers(*answers: Answer) -> Callable[[str, str], Answer | None]:
    """Returns a rule that answers a request to register by each of these in turn, then by the last one."""
    left = list(answers)

    def rule(verb: str, path: str) -> Answer | None:
        if not path.endswith("/register"):
            return None
        return left.pop(0) if len(left) > 1 else left[0]

    return rule


def verbs(desk: Desk) -> list[str]:
    return [verb for verb, _, _ in desk.asked]


def test_a_server_that_knows_overwrite_never_drops_the_table(desk: Desk) -> None:
    desk.rules.append(registers((200, {"metadata-location": NEXT})))
    assert placing_at(desk).place_table(EVENTS, NOW, NEXT) is SwapOutcome.DONE
    assert desk.sent == [{"name": "events", "metadata-location": NEXT, "overwrite": True}]
    assert "DELETE" not in verbs(desk)


def test_a_table_that_stands_elsewhere_is_not_overwritten(desk: Desk) -> None:
    desk.rules.append(registers((200, {})))
    assert placing_at(desk).place_table(EVENTS, "s3://b/t/metadata/0.metadata.json", NEXT) is SwapOutcome.LOST
    assert placing_at(desk).place_table(EVENTS, None, NEXT) is SwapOutcome.LOST
    assert placing_at(desk).place_table(EVENTS, None, NOW) is SwapOutcome.DONE
    assert set(verbs(desk)) == {"GET"}


def test_a_page_that_answers_a_registration_is_no_table(desk: Desk) -> None:
    """Were it taken for one, the history that a tier seems to have would be removed from the live table."""
    desk.rules.append(registers((200, {})))
    assert placing_at(desk).place_table(EVENTS, NOW, NEXT) is SwapOutcome.UNKNOWN


@pytest.mark.parametrize("status", [400, 403, 422])
def test_a_refused_overwrite_drops_nothing(desk: Desk, status: int) -> None:
    desk.rules.append(registers(problem(status, "BadRequestException", "bad metadata")))
    with pytest.raises(FirnlineError, match="bad metadata"):
        placing_at(desk).place_table(EVENTS, NOW, NEXT)
    assert "DELETE" not in verbs(desk)


@pytest.mark.parametrize("status", [406, 409, 501])
def test_a_server_that_refuses_to_drop_a_table_without_its_files_keeps_it(desk: Desk, status: int) -> None:
    desk.rules.append(registers(problem(status, "UnsupportedOperationException", "no overwrite")))
    desk.rules.append(lambda verb, _: problem(400, "BadRequestException", "purge only") if verb == "DELETE" else None)
    with pytest.raises(UsageError, match="purge only"):
        placing_at(desk).place_table(EVENTS, NOW, NEXT)
    assert verbs(desk).count("DELETE") == 1
    assert verbs(desk).count("POST") == 1


def test_a_table_that_can_neither_be_registered_nor_put_back_is_said_where_it_lies(desk: Desk) -> None:
    desk.rules.append(registers(problem(406, "U", "no overwrite"), problem(403, "ForbiddenException", "not you")))
    desk.rules.append(lambda verb, _: (204, {}) if verb == "DELETE" else None)
    with pytest.raises(StoreError, match="not in its catalog any more") as lost:
        placing_at(desk).place_table(EVENTS, NOW, NEXT)
    assert NOW in lost.value.hint
    assert [each["metadata-location"] for each in desk.sent] == [NEXT, NEXT, NOW]


def test_a_table_is_registered_again_as_long_as_the_server_is_busy(desk: Desk) -> None:
    busy = (problem(429, "", "busy"), problem(503, "", "away"), (200, {"metadata-location": NEXT}))
    desk.rules.append(registers(problem(406, "U", "no overwrite"), *busy))
    desk.rules.append(lambda verb, _: (204, {}) if verb == "DELETE" else None)
    assert placing_at(desk).place_table(EVENTS, NOW, NEXT) is SwapOutcome.DONE


def test_a_table_whose_metadata_the_server_does_not_find_is_there_all_the_same(desk: Desk) -> None:
    missing = problem(404, "NotFoundException", "no such file")
    desk.rules.append(lambda verb, path: missing if path.endswith("/tables/events") else None)
    with pytest.raises(UnreadableMetadata):
        placing_at(desk).place_table(EVENTS, None, NEXT)
    assert set(verbs(desk)) == {"GET"}


def test_a_name_that_a_view_has_is_refused(desk: Desk) -> None:
    desk.rules.append(registers(problem(409, "AlreadyExistsException", "View with same name already exists")))
    with pytest.raises(UsageError, match="View with same name"):
        placing_at(desk).place_table(TableName("lake", ("eu", "west"), "seen"), None, NEXT)


def test_a_table_without_a_namespace_has_no_address(desk: Desk) -> None:
    with pytest.raises(UsageError, match="without a namespace"):
        placing_at(desk).place_table(TableName("lake", (), "events"), None, NEXT)
    assert desk.asked == []
