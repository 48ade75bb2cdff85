"""Requests to a REST catalog, and what its replies mean."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from ssl import SSLCertVerificationError
from typing import Any

import requests
from urllib3.exceptions import NewConnectionError, SSLError

from firnline.answering import refuse_silent
from firnline.catalogs.rest.settings import RestSettings
from firnline.catalogs.rest.tokens import Tokens
from firnline.errors import (
    AccessDenied,
    BadCredentials,
    ExpiredCredentials,
    FirnlineError,
    StoreError,
    Unreachable,
    UsageError,
)
from firnline.patience import Patience

LOGIN_ENDED = 419
SIGN_IN = (401, LOGIN_ENDED)
_SHOWN = 400
"""Of a server's words no more than a line or two, cut after secrets were hidden: half of one is a secret, too."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A status, and the answer's JSON object; an answer that is none is empty."""

    status: int
    body: Mapping[str, Any] = field(repr=False)

    @property
    def is_good(self) -> bool:
        return 200 <= self.status < 300

    @property
    def error_type(self) -> str:
        return str(self._error.get("type", ""))

    @property
    def said(self) -> str:
        """The server's own words, by the protocol's error model, in one line. They may be long, and quote secrets."""
        words = str(self._error.get("message") or "").splitlines()
        return " ".join(words) or f"status {self.status}"

    @property
    def _error(self) -> Mapping[str, Any]:
        error = self.body.get("error")
        return error if isinstance(error, dict) else {}


def reply_of(response: requests.Response) -> Reply:
    try:
        body = response.json()
    except ValueError:
        body = {}
    return Reply(response.status_code, body if isinstance(body, dict) else {})


def refusal(settings: RestSettings, reply: Reply, what: str, signed_in: bool) -> FirnlineError:
    """Returns the error for an answer that is not good, and not about a table's existence.

    `signed_in`: this session had good answers before, so a refused token is one that ended.
    """
    who, said = f"catalog {settings.name} at {settings.shown_uri}", settings.hidden(reply.said)[:_SHOWN]
    if reply.status == LOGIN_ENDED or (reply.status == 401 and signed_in):
        return ExpiredCredentials(
            f"{who}: the token ended ({said})", "set a new token, or a credential, with which firnline renews it"
        )
    if reply.status == 401:
        return BadCredentials(
            f"{who} does not accept these credentials: {said}", "check token or credential in .pyiceberg.yaml"
        )
    if reply.status == 403:
        return AccessDenied(f"{who} does not allow {what}: {said}", "ask for that permission on the catalog's side")
    if reply.status == 404:
        return UsageError(f"{who} does not know {what}: {said}", "check uri, prefix and warehouse")
    if reply.status == 429 or reply.status >= 500:
        return StoreError(f"{who} could not do {what}: {said}", "try again; the server's own log says more")
    return UsageError(f"{who} refused {what}: {said}", "nothing was changed")


_PATIENCE = Patience(attempts=4, base_delay_s=0.4, max_delay_s=1.6, budget_s=float("inf"))
_LONGEST_PAUSE_S = 10.0
_BUSY = (429, 502, 503, 504)


class Unanswered(Exception):
    """The request may have arrived, and nobody said what became of it."""


class Http:
    """One session with one server."""

    def __init__(self, settings: RestSettings) -> None:
        self._settings = settings
        self._session = requests.Session()
        self._session.headers.update(settings.headers)
        self._session.verify = settings.verify
        self._session.cert = settings.certificate
        self._session.trust_env = settings.verify is True  # else the environment's bundle would win over the configured
        self._session.auth = _as_signed
        self._tokens = Tokens(settings, self._session)
        self.signed_in = False

    def read(self, path: str, params: Mapping[str, str] | None = None) -> Reply:
        """Returns the answer to a GET, asked again while the server is busy or away. Raises Unreachable."""
        self.refuse_silent()
        for pause in _PATIENCE.pauses():
            wished = 0.0
            try:
                response = self._send("GET", path, params=params)
                if response.status_code not in _BUSY:
                    return reply_of(response)
                wished = _wished(response)
            except (Unanswered, Unreachable):
                pass
            time.sleep(max(wished, pause))
        try:
            return reply_of(self._send("GET", path, params=params))
        except Unanswered as silent:
            raise self._unreachable(str(silent)) from None

    def post(self, path: str, body: Mapping[str, Any]) -> Reply:
        """Returns the answer to a POST, sent once. Raises Unanswered where it may have arrived, else Unreachable."""
        self.refuse_silent()
        return reply_of(self._send("POST", path, json=body))

    def delete(self, path: str, params: Mapping[str, str]) -> Reply:
        """Returns the answer to a DELETE, sent once. Raises as `post` does."""
        self.refuse_silent()
        return reply_of(self._send("DELETE", path, params=params))

    def close(self) -> None:
        self._session.close()

    def refuse_silent(self) -> None:
        """Raises Unreachable where the server hangs: it would be asked again for minutes."""
        refuse_silent(self._settings.uri, f"catalog {self._settings.name} at {self._settings.shown_uri}")

    def _send(self, verb: str, path: str, **options: Any) -> requests.Response:
        """Sends a request; one that is refused for its token alone is sent once more with a new one."""
        signed = self._tokens.header()
        response = self._sent(verb, path, signed, **options)
        if response.status_code in SIGN_IN and self._tokens.renew(signed):
            response = self._sent(verb, path, self._tokens.header(), **options)
        self.signed_in = self.signed_in or response.status_code < 300
        return response

    def _sent(self, verb: str, path: str, signed: str | None, **options: Any) -> requests.Response:
        headers = {"Authorization": signed} if signed else {}
        address, wait = f"{self._settings.uri}{path}", self._settings.timeout_s
        try:
            return self._session.request(
                verb, address, headers=headers, timeout=(min(10.0, wait), wait), allow_redirects=False, **options
            )
        except (requests.exceptions.ProxyError, requests.ConnectTimeout) as error:
            raise self._unreachable(str(error)) from None
        except requests.ConnectionError as error:
            if _untrusted(error):
                raise self._unreachable(str(error)) from None
            if _never_connected(error):
                raise self._unreachable("nobody accepts connections there") from None
            raise Unanswered(self._settings.hidden(str(error))) from None
        except requests.Timeout:
            raise Unanswered(f"no answer within {wait:g} s") from None
        except (requests.exceptions.InvalidURL, requests.exceptions.InvalidSchema, ValueError) as error:
            raise self._unreachable(str(error)) from None
        except requests.RequestException as error:
            raise Unanswered(self._settings.hidden(str(error))) from None

    def _unreachable(self, why: str) -> Unreachable:
        name, where = self._settings.name, self._settings.shown_uri
        return Unreachable(
            f"catalog {name} at {where} does not answer: {self._settings.hidden(why)}",
            "check the uri, and ssl.cabundle for a certificate of your own; then try again",
        )


def _as_signed(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Returns the request as it is: without this, a ~/.netrc that knows the host would take the place of our token."""
    return request


def _never_connected(error: requests.ConnectionError) -> bool:
    reason = getattr(error.args[0], "reason", None) if error.args else None
    return isinstance(reason, NewConnectionError)


def _untrusted(error: requests.ConnectionError) -> bool:
    """Tells whether the server's certificate was refused: any other failure of TLS may come after the request."""
    reason = getattr(error.args[0], "reason", None) if error.args else None
    return isinstance(reason, SSLError) and any(isinstance(each, SSLCertVerificationError) for each in reason.args)


def _wished(response: requests.Response) -> float:
    """Returns how long the server asks to be left alone, in seconds, within reason."""
    text = response.headers.get("Retry-After", "")
    return min(float(text), _LONGEST_PAUSE_S) if text.isdigit() else 0.0
