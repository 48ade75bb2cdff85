"""Who may look and who may act.

Reading is open on this machine alone; from anywhere else it takes the token, as every action does. What a proxy brings
is from elsewhere, although the proxy itself may be on this machine. A browser shows a session, whose cookie no other
site can send, and each form of it has a word that no other site can read. A program shows the token itself. Requests
for another host's name are refused: a name that was turned to this machine would else let any web site read what is
here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from firnline.errors import UsageError
from firnline.web.serving.guesses import Guesses
from firnline.web.serving.sessions import Session, Sessions, is_same

COOKIE = "firnline_session"
LONGEST_BODY = 64 * 1024
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; img-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_OWN_HOSTS = ("localhost", "127.0.0.1", "::1")
_SAME = (None, "same-origin", "none")
_BROUGHT = ("forwarded", "via", "x-real-ip")
_BROUGHT_PREFIX = "x-forwarded-"


class NotAllowed(UsageError):
    """The request does not show what it takes. `status` is that of the answer; `retry_s`: it may come again then."""

    kind = "not-allowed"

    def __init__(self, message: str, status: int = 403, hint: str = "", retry_s: int | None = None) -> None:
        super().__init__(message, hint)
        self.status, self.retry_s = status, retry_s


def is_loopback(host: str) -> bool:
    """Tells whether nobody but this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def address_of(request: Request) -> str:
    """Returns the host that a request comes from, as the socket has it; empty if the socket has none. A header is not
    believed, for a guesser can write one.
    """
    return "" if request.client is None else request.client.host


def is_brought(headers: Headers) -> bool:
    """Tells whether a proxy says that it brings the request of another machine. One that says nothing cannot be told
    from a browser here: `--name` is what closes the page then.
    """
    return any(name in _BROUGHT or name.startswith(_BROUGHT_PREFIX) for name in headers)


@dataclass
class Gate:
    """What it takes. `token` is None where nobody may act; `is_open`: reading takes nothing."""

    token: str | None
    is_open: bool
    hosts: frozenset[str] = frozenset(_OWN_HOSTS)
    sessions: Sessions = field(default_factory=Sessions)
    guesses: Guesses = field(default_factory=Guesses)

    def login(self, token: str, who: str, address: str = "") -> str:
        """Returns a new session's name. Raises NotAllowed for a wrong token, or without a name; and after several wrong
        ones from the address, for a while.
        """
        if self.token is None:
            raise NotAllowed("no token is set: nobody may act", hint="set FIRNLINE_PAGE_TOKEN and start again")
        if not self._is_token(token, address):
            raise NotAllowed("this is not the token", 401)
        if not who.strip():
            raise NotAllowed("no name was given", 400, hint="it is written down who did what")
        return self.sessions.begin(who.strip())

    def session(self, request: Request) -> Session | None:
        return self.sessions.find(request.cookies.get(COOKIE))

    def bearer(self, request: Request) -> bool:
        """Tells whether a program shows the token. Raises NotAllowed as `login` does: it may guess as well."""
        kind, _, said = request.headers.get("authorization", "").partition(" ")
        return kind.lower() == "bearer" and self._is_token(said.strip(), address_of(request))

    def _is_token(self, said: str, address: str) -> bool:
        """Tells whether it is the token. Raises NotAllowed where it is too early for another guess: nothing is compared
        then, so that nobody learns anything.
        """
        if self.token is None:
            return False
        wait_s = self.guesses.wait_s(address)
        if wait_s:
            raise NotAllowed("there were too many wrong tokens", 429, f"try again in {wait_s} s", wait_s)
        found = is_same(said, self.token)
        (self.guesses.met if found else self.guesses.missed)(address)
        return found

    def may_read(self, request: Request) -> bool:
        here = self.is_open and not is_brought(request.headers)
        return here or self.session(request) is not None or self.bearer(request)

    def is_secure(self, request: Request) -> bool:
        """Tells whether a session's cookie must never go over plain HTTP: others than this machine reach the page, or a
        proxy with TLS brings the request. Only loopback itself has nobody who listens.
        """
        forwarded = request.headers.get("x-forwarded-proto", "").partition(",")[0].strip().lower()
        return not self.is_open or request.url.scheme == "https" or forwarded == "https"

    def acting(self, request: Request, form: Mapping[str, str]) -> str:
        """Returns who acts by a form. Raises NotAllowed without a session, and for a form that another site made."""
        session = self.session(request)
        if session is None:
            raise NotAllowed("this takes a login", 401, hint="log in first")
        if request.headers.get("sec-fetch-site") not in _SAME:
            raise NotAllowed("another site sent this form")
        if not is_same(form.get("csrf", ""), session.csrf):
            raise NotAllowed("this form is not of your session", hint="load the page again")
        return session.who

    def calling(self, request: Request, by: str) -> str:
        """Returns for whom a program acts. Raises NotAllowed without the token: a cookie is not enough here."""
        if not self.bearer(request):
            raise NotAllowed("this takes the token", 401, hint="send it as `Authorization: Bearer TOKEN`")
        if not by.strip():
            raise NotAllowed("no name was given", 400, hint='say who acts: "by"')
        return by.strip()


@dataclass(frozen=True, slots=True)
class Guarded:
    """Every request passes here first: its host, its length; and every answer, which gets the headers."""

    app: ASGIApp
    hosts: frozenset[str]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
            await send(message)

        refusal = self._refusal(Headers(scope=scope), scope["method"])
        await (refusal or self.app)(scope, receive, with_headers)

    def _refusal(self, headers: Headers, method: str) -> PlainTextResponse | None:
        if host_of(headers.get("host", "")) not in self.hosts:
            return PlainTextResponse("this page is not at that name\n", 421)
        if method in ("GET", "HEAD"):
            return None
        length = headers.get("content-length", "")
        if "transfer-encoding" in headers or not (length or "0").isdecimal():
            return PlainTextResponse("say how long it is\n", 411)
        return PlainTextResponse("too long\n", 413) if int(length or "0") > LONGEST_BODY else None


def host_of(said: str) -> str:
    """Returns the host of a Host header, without its port."""
    if said.startswith("["):
        return said[1:].partition("]")[0].lower()
    return said.partition(":")[0].lower()
