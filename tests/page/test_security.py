"""Who may act, and that nothing that others wrote or asked for does harm."""

from __future__ import annotations

import hmac
import http.client
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests

from firnline.cli.main import run
from firnline.errors import UsageError
from firnline.lake import open_lake
from firnline.testing.tables import SmallTable
from firnline.web.serving import sessions
from firnline.web.serving.gate import COOKIE, Gate, NotAllowed, host_of, is_loopback
from firnline.web.serving.sessions import LONGEST_S, Sessions
from firnline.web.serving.starting import Serving, gate_of, hosts_of, refuse_open, token_of

from .conftest import EVIL, TABLE, TOKEN, OpenPage, said, served

ACTIONS = {
    "plan": {"table": TABLE},
    "approve": {"run": f"{TABLE}@20260101T000000Z-abcdef"},
    "undo": {"run": f"{TABLE}@20260101T000000Z-abcdef"},
    "hold": {"table": TABLE, "hold": "case-1"},
    "release": {"table": TABLE, "hold": "case-1"},
}
PAGES = ("/", f"/table?name={TABLE}", f"/plan?name={TABLE}", "/runs", "/savings", "/why", "/login")


@pytest.mark.parametrize("action", ACTIONS)
def test_nothing_is_done_without_the_token(page: OpenPage, action: str) -> None:
    words = ACTIONS[action]
    assert page.call(f"/api/do/{action}", None, **words, by="eve").status_code == 401
    assert page.call(f"/api/do/{action}", "wrong" + TOKEN, **words, by="eve").status_code == 401
    assert page.call(f"/api/do/{action}", TOKEN[:-1], **words, by="eve").status_code == 401
    assert page.post(f"/do/{action}", words).status_code == 401
    page.log_in()
    assert page.post(f"/do/{action}", words).status_code == 403, "no word of the session"
    assert page.post(f"/do/{action}", {**words, "csrf": "x"}).status_code == 403
    assert page.call(f"/api/do/{action}", None, **words, by="eve").status_code == 401, "a cookie is not enough"
    with_cookie = page.browser.post(f"{page.address}/api/do/{action}", json={**words, "by": "eve"}, timeout=10)
    assert with_cookie.status_code == 401
    lake = open_lake()
    assert lake.runs(TABLE) == []
    assert lake.holds(TABLE) == ()


def test_another_site_cannot_send_a_form(page: OpenPage) -> None:
    csrf = page.log_in()
    form = {**ACTIONS["hold"], "csrf": csrf}
    for site in ("cross-site", "same-site"):
        assert page.post("/do/hold", form, headers={"Sec-Fetch-Site": site}).status_code == 403
    assert (
        page.post("/login", {"who": "x", "token": TOKEN}, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    )
    assert page.post("/do/hold", form, headers={"Content-Type": "text/plain"}).status_code == 415
    assert open_lake().holds(TABLE) == ()
    assert page.post("/do/hold", form, headers={"Sec-Fetch-Site": "same-origin"}).status_code == 200
    assert [each.who for each in open_lake().holds(TABLE)] == ["Ann Auditor"]


def test_the_cookie_is_for_this_page_alone(still: OpenPage) -> None:
    answer = still.post("/login", {"who": "ann", "token": TOKEN}, allow_redirects=False)
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert TOKEN not in cookie


def test_the_cookie_never_goes_over_plain_http_where_others_reach_the_page(still: OpenPage, table: SmallTable) -> None:
    def attributes(page: OpenPage, **headers: str) -> list[str]:
        form = {"who": "ann", "token": TOKEN}
        answer = requests.post(f"{page.address}/login", form, headers=headers, timeout=10, allow_redirects=False)
        return [each.strip().lower() for each in answer.headers["set-cookie"].split(";")]

    assert "secure" not in attributes(still), "a browser may keep no such cookie of loopback"
    assert "secure" not in attributes(still, **{"X-Forwarded-Proto": "http"})
    assert "secure" in attributes(still, **{"X-Forwarded-Proto": "https"})
    assert "secure" in attributes(still, **{"X-Forwarded-Proto": "HTTPS, http"})
    with served(gate_of("127.0.0.1", Serving("1", TOKEN, ("lake.example.org",)))) as page:
        assert "secure" in attributes(page)
        assert "HTTPS alone" in page.get("/login").text


def test_a_login_leads_to_no_other_site(still: OpenPage) -> None:
    for where in ("https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)"):
        answer = still.post("/login", {"who": "ann", "token": TOKEN, "next": where}, allow_redirects=False)
        assert answer.headers["location"] == "/"


def test_the_token_is_compared_in_constant_time(still: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[bytes] = []
    real = hmac.compare_digest

    def recorded(one: bytes, other: bytes) -> bool:
        compared.append(other)
        return real(one, other)

    monkeypatch.setattr(sessions.hmac, "compare_digest", recorded)
    assert still.post("/login", {"who": "ann", "token": "x"}).status_code == 401
    assert still.call("/api/do/plan", "x", table=TABLE, by="eve").status_code == 401
    assert compared.count(TOKEN.encode()) >= 2


def test_a_tag_named_script_is_words_on_every_page(page: OpenPage, table: SmallTable, tmp_path: Path) -> None:
    page.log_in(who=EVIL)
    shown = [page.get(path).text for path in PAGES]
    shown += [
        page.get("/why", params={"table": TABLE, "what": what}).text for what in (EVIL, f"<b>{EVIL}", table.live()[0])
    ]
    shown += [page.get("/", params={"q": EVIL}).text, page.get("/table", params={"name": EVIL}).text]
    for text in shown:
        assert "<script>alert" not in text
        assert text.count("<script") == 1, "the page's own"
    assert "&lt;script&gt;alert" in shown[1]
    for target in (TABLE,):
        assert run(["report", target, "--html", str(tmp_path / "out.html")]) == 0
        report = (tmp_path / "out.html").read_text()
        assert "<script" not in report
        assert "&lt;script&gt;alert" in report


def test_a_report_needs_nothing_else(page: OpenPage, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ended = said(capsys, "expire", TABLE, "--grace", "0s", "--yes")
    for target in (TABLE, ended["run"]):
        assert run(["report", target, "--html", str(tmp_path / "out.html")]) == 0
        text = (tmp_path / "out.html").read_text().replace('xmlns="http://www.w3.org/2000/svg"', "")
        assert not any(
            each in text for each in ("http:", "https:", "src=", "href=", "url(", "@import", "<link", "<script")
        )
        assert ended["run"] in text


@pytest.mark.parametrize("path", [*PAGES, "/nothing", "/api/tables", "/openapi.json", "/static/page.css"])
def test_every_answer_has_the_headers(still: OpenPage, path: str) -> None:
    headers = still.get(path).headers
    policy = dict(each.strip().partition(" ")[::2] for each in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self'", "no inline script"
    assert policy["frame-ancestors"] == "'none'"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "server" not in headers or "uvicorn" not in path


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "", "[::2]"])
def test_another_host_s_name_is_refused(still: OpenPage, host: str) -> None:
    assert requests.get(still.address, headers={"Host": host}, timeout=10).status_code == 421


def test_names_of_this_machine_are_answered(still: OpenPage) -> None:
    for host in ("localhost", "localhost:1", "127.0.0.1", "[::1]:80"):
        assert requests.get(still.address, headers={"Host": host}, timeout=10).status_code == 200
    assert host_of("[::1]:80") == "::1"


@pytest.mark.parametrize(
    "path",
    [
        "/static/../serving/gate.py", "/static/..%2f..%2fapp.py", "/static//etc/passwd", "/../../etc/passwd",
        "/static/%2e%2e/%2e%2e/__init__.py", "/static/page.css/../../__init__.py",
    ],
)  # fmt: skip
def test_no_path_leads_out(still: OpenPage, path: str) -> None:
    where = urlsplit(still.address)
    line = http.client.HTTPConnection(where.hostname or "", where.port or 0, timeout=10)
    line.request("GET", path)
    assert line.getresponse().status == 404
    line.close()


@pytest.mark.parametrize("name", ["/etc", "file:///etc", ".", "ns/events", "lake.ns.other", "", "s3://bucket/t", "*"])
def test_only_tables_of_catalogs_are_opened(still: OpenPage, name: str) -> None:
    for path, asked in (("/table", "name"), ("/plan", "name"), ("/api/table", "name"), ("/api/plan", "name")):
        assert still.get(path, params={asked: name}).status_code in (400, 404)
    for run_name in (f"{name}@20260101T000000Z-abcdef", f"{TABLE}@..", f"{TABLE}@../x", name):
        assert still.get("/run", params={"id": run_name}).status_code in (400, 404)
        assert still.get("/api/run", params={"id": run_name}).status_code in (400, 404)
    assert still.facts("/api/table", name=TABLE)["table"] == TABLE
    assert still.table is not None
    location = still.table.location
    assert still.get("/table", params={"name": location}).status_code == 404, "by its folder neither"


def test_a_relative_path_is_not_looked_for(still: OpenPage) -> None:
    answer = still.get("/api/why", params={"table": TABLE, "what": "../firnline.yaml"})
    assert answer.status_code == 400
    assert "whole path" in answer.json()["error"]["message"]


def test_long_bodies_are_refused_unread(still: OpenPage) -> None:
    assert still.post("/do/hold", "x" * 70_000).status_code == 413
    assert still.call("/api/do/hold", hold="x" * 70_000, table=TABLE, by="a").status_code == 413
    chunked = still.browser.post(f"{still.address}/do/hold", data=iter([b"x"]), timeout=10)
    assert chunked.status_code == 411


def test_half_a_pair_of_surrogates_does_no_harm(page: OpenPage) -> None:
    half = "\\ud800"
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    for path, body in (
        ("/api/do/hold", f'{{"table": "{TABLE}", "hold": "{half}", "why": "{half}", "by": "ann"}}'),
        ("/api/do/hold", f'{{"table": "{half}", "hold": "x", "by": "{half}"}}'),
        ("/api/do/undo", f'{{"run": "{half}@{half}", "by": "ann"}}'),
    ):
        assert page.post(path, body, headers=headers).status_code < 500
    assert page.get("/table", params={"name": TABLE}).status_code == 200
    assert page.get("/api/table", params={"name": TABLE}).status_code == 200


def test_from_elsewhere_even_reading_takes_the_token(table: SmallTable) -> None:
    with served(Gate(TOKEN, is_open=False)) as page:
        for path in PAGES[:-1]:
            answer = page.get(path, allow_redirects=False)
            assert answer.status_code == 303
            assert answer.headers["location"].startswith("/login")
        assert page.get("/api/tables").status_code == 401
        assert page.get("/openapi.json", allow_redirects=False).status_code == 303
        headers = {"Authorization": f"Bearer {TOKEN}"}
        assert page.get("/api/tables", headers=headers).status_code == 200
        page.log_in()
        assert page.get("/", allow_redirects=False).status_code == 303, "over plain HTTP the cookie stays here"
        (name,) = page.gate.sessions._open
        assert TABLE in page.get("/", headers={"Cookie": f"{COOKIE}={name}"}).text


def test_a_page_with_a_name_is_not_open_behind_a_proxy_of_this_machine(table: SmallTable) -> None:
    gate = gate_of("127.0.0.1", Serving("1", TOKEN, ("lake.example.org",)))
    with served(gate) as page:
        for host in ("lake.example.org", "127.0.0.1"):  # a proxy may leave either
            headers = {"Host": host}
            assert page.get("/api/tables", headers=headers).status_code == 401
            assert page.get("/", headers=headers, allow_redirects=False).status_code == 303
            headers["Authorization"] = f"Bearer {TOKEN}"
            assert page.get("/api/tables", headers=headers).status_code == 200
    with pytest.raises(UsageError, match="no token"):
        gate_of("127.0.0.1", Serving("1", None, ("lake.example.org",)))
    assert gate_of("127.0.0.1", Serving("1", None)).is_open


@pytest.mark.parametrize(
    "name", ["Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Proto", "X-FORWARDED-HOST", "X-Real-IP"]
)
def test_what_a_proxy_brings_is_not_of_this_machine(still: OpenPage, name: str) -> None:
    brought = {name: "for=192.0.2.7"}
    asked: dict[str, dict[str, str]] = {"/api/tables": {}, "/api/table": {"name": TABLE}}
    for path, words in asked.items():
        assert requests.get(f"{still.address}{path}", words, headers=brought, timeout=10).status_code == 401
        shown = {**brought, "Authorization": f"Bearer {TOKEN}"}
        assert requests.get(f"{still.address}{path}", words, headers=shown, timeout=10).status_code == 200
    answer = requests.get(f"{still.address}/", headers=brought, timeout=10, allow_redirects=False)
    assert answer.headers["location"].startswith("/login")


def test_without_a_token_nobody_acts(table: SmallTable) -> None:
    with served(Gate(None, is_open=True)) as page:
        assert "log in" not in page.get("/").text
        assert page.post("/login", {"who": "x", "token": ""}).status_code == 403
        for token in ("", "None", TOKEN):
            assert page.call("/api/do/plan", token, table=TABLE, by="x").status_code == 401


def test_a_public_address_needs_a_token_and_a_name() -> None:
    for host in ("0.0.0.0", "::", "", "192.0.2.7", "example.org"):
        assert not is_loopback(host)
        with pytest.raises(UsageError, match="no token"):
            refuse_open(host, is_loopback(host), Serving(f"{host}:1", None))
    with pytest.raises(UsageError, match="any name"):
        refuse_open("0.0.0.0", False, Serving("0.0.0.0:1", TOKEN))
    refuse_open("0.0.0.0", False, Serving("0.0.0.0:1", TOKEN, ("lake.example.org",)))
    refuse_open("127.0.0.1", is_loopback("127.0.0.1"), Serving("1", None))
    assert "0.0.0.0" not in hosts_of("0.0.0.0", ["Lake.example.org"])
    assert "lake.example.org" in hosts_of("0.0.0.0", ["Lake.example.org"])


def test_the_command_refuses_before_it_listens(table: SmallTable, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["serve", "--listen", "0.0.0.0:0"]) == 2
    assert "no token" in capsys.readouterr().err


def test_a_token_is_long_and_its_file_its_owner_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FIRNLINE_PAGE_TOKEN", raising=False)
    assert token_of(None) is None
    monkeypatch.setenv("FIRNLINE_PAGE_TOKEN", "short")
    with pytest.raises(UsageError, match="shorter"):
        token_of(None)
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    file.chmod(0o600)
    assert token_of(file) == TOKEN
    file.chmod(0o666)
    with pytest.raises(UsageError, match="not yours alone"):
        token_of(file)


def test_a_session_ends() -> None:
    now = [0.0]
    kept = Sessions(lambda: now[0])
    name = kept.begin("ann")
    found = kept.find(name)
    assert found is not None
    assert kept.find(name + "x") is None
    now[0] = LONGEST_S + 1.0
    assert kept.find(name) is None
    gate = Gate(TOKEN, is_open=True)
    with pytest.raises(NotAllowed):
        gate.login(TOKEN, "  ")
