"""Requests to a REST catalog, and what its replies mean."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from ssl import SSLCertVerificationError
from typing import Any, NamedTuple

import requests
from urllib3.exceptions import HTTPError, NewConnectionError, ReadTimeoutError, SSLError

from firnline.answering import IS_TOLD_AFTER_S, forget, refuse_silent, tell, told
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
from firnline.inflate import believable
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
    def tells_table(self) -> bool:
        """Tells whether it is what the protocol answers to who commits or registers: the table as it is now. A gateway
        that wants a login answers with status 200, too.
        """
        return self.is_good and bool(self.body.get("metadata-location") or self.body.get("metadata"))

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


class WholeAnswer(NamedTuple):
    """An answer that came to its end."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def wished_pause_s(self) -> float:
        """How long the server asks to be left alone, in seconds, within reason."""
        text = self.headers.get("Retry-After", "")
        return min(float(text), _LONGEST_PAUSE_S) if text.isascii() and text.isdigit() else 0.0


def reply_of(answer: WholeAnswer) -> Reply:
    try:
        body = json.loads(answer.content)
    except (ValueError, RecursionError):
        body = {}
    return Reply(answer.status, body if isinstance(body, dict) else {})


def refusal(settings: RestSettings, reply: Reply, what: str, signed_in: bool) -> FirnlineError:
    """Returns the error for an answer that is not good, and not about a table's existence.

    `signed_in`: this session had good answers before, so a refused token is one that ended.
    """
    who, said = settings.who, settings.hidden(reply.said)[:_SHOWN]
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
_CONNECTS_WITHIN_S = 10.0
_SHORTEST_TRY_S = 1.0
_PIECE = 1 << 16
_SLOWEST = 10_000
"""Bytes a second: an answer that comes in drops would never be late, and take hours."""
_LARGEST = 1 << 30
"""Bytes of one answer: one that never ends, or bursts, would fill the memory."""
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
        """Returns the answer to a GET, asked again while the server is busy or away. Raises Unreachable, also where all
        tries together waited in vain for as long as a server may be silent.
        """
        self.refuse_silent()
        left_s = self._settings.silence_s
        for pause in (*_PATIENCE.pauses(), None):
            began_s, wished = time.monotonic(), 0.0
            try:
                answer = self._send("GET", path, min(left_s, self._settings.timeout_s), params=params)
                if answer.status not in _BUSY or pause is None:
                    return reply_of(answer)
                wished = answer.wished_pause_s
            except (Unanswered, Unreachable) as failure:
                left_s -= time.monotonic() - began_s
                if pause is None or left_s < _SHORTEST_TRY_S:
                    raise self._given_up(failure, left_s) from None
            self._wait(max(wished, pause))
        raise AssertionError("the last try returns or raises")

    def _given_up(self, failure: Unanswered | Unreachable, left_s: float) -> Unreachable:
        """Returns the error for a read that got no answer. A server that kept silent is asked for a word before the
        next request, so that the tables behind it do not wait for it one by one.
        """
        if left_s < _SHORTEST_TRY_S:
            forget(self._settings.uri)
        return failure if isinstance(failure, Unreachable) else self._unreachable(str(failure))

    def _wait(self, pause: float) -> None:
        if pause >= IS_TOLD_AFTER_S:
            tell(self._settings.who, "is busy")
        time.sleep(pause)

    def post(self, path: str, body: Mapping[str, Any]) -> Reply:
        """Returns the answer to a POST, sent once. Raises Unanswered where it may have arrived, else Unreachable."""
        self.refuse_silent()
        return reply_of(self._send("POST", path, self._settings.timeout_s, json=body))

    def delete(self, path: str, params: Mapping[str, str]) -> Reply:
        """Returns the answer to a DELETE, sent once. Raises as `post` does."""
        self.refuse_silent()
        return reply_of(self._send("DELETE", path, self._settings.timeout_s, params=params))

    def close(self) -> None:
        self._session.close()

    def refuse_silent(self) -> None:
        """Raises Unreachable where the server hangs: it would be asked again for minutes."""
        refuse_silent(self._settings.uri, self._settings.who)

    def _send(self, verb: str, path: str, wait_s: float, **options: Any) -> WholeAnswer:
        """Sends a request; one that is refused for its token alone is sent once more with a new one."""
        signed = self._tokens.header()
        answer = self._sent(verb, path, wait_s, signed, **options)
        if answer.status in SIGN_IN and self._tokens.renew(signed):
            answer = self._sent(verb, path, wait_s, self._tokens.header(), **options)
        self.signed_in = self.signed_in or answer.status < 300
        return answer

    def _sent(self, verb: str, path: str, wait_s: float, signed: str | None, **options: Any) -> WholeAnswer:
        headers = {"Authorization": signed} if signed else {}
        address, limits = f"{self._settings.uri}{path}", (min(_CONNECTS_WITHIN_S, wait_s), wait_s)
        try:
            with told(self._settings.who):
                return _heard_out(
                    self._session.request(
                        verb, address, headers=headers, timeout=limits, allow_redirects=False, stream=True, **options
                    ),
                    wait_s,
                )
        except (requests.exceptions.ProxyError, requests.ConnectTimeout) as error:
            raise self._unreachable(str(error)) from None
        except requests.ConnectionError as error:
            if _untrusted(error):
                raise self._unreachable(str(error)) from None
            if _never_connected(error):
                raise self._unreachable("nobody accepts connections there") from None
            raise Unanswered(self._settings.hidden(str(error))) from None
        except (requests.Timeout, ReadTimeoutError):
            raise Unanswered(f"no answer within {wait_s:.3g} s") from None
        except (requests.exceptions.InvalidURL, requests.exceptions.InvalidSchema, ValueError) as error:
            raise self._unreachable(str(error)) from None
        except (requests.RequestException, HTTPError) as error:
            raise Unanswered(self._settings.hidden(str(error))) from None

    def _unreachable(self, why: str) -> Unreachable:
        return Unreachable(
            f"{self._settings.who} does not answer: {self._settings.hidden(why)}",
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


def _heard_out(response: requests.Response, wait_s: float) -> WholeAnswer:
    """Returns the whole answer. Raises ReadTimeout where it is late, and too slow ever to come to its end, and
    RequestException where it is larger than any answer.
    """
    ends_s, pieces, size = time.monotonic() + wait_s, list[bytes](), 0
    while piece := response.raw.read1(_PIECE, decode_content=True):
        pieces.append(piece)
        size += len(piece)
        if time.monotonic() > ends_s + size / _SLOWEST:
            response.close()
            raise requests.ReadTimeout
        if size > min(believable(response.raw.tell()), _LARGEST):
            response.close()
            raise requests.RequestException(f"its answer is larger than {size - 1:,} bytes")
    return WholeAnswer(response.status_code, response.headers, b"".join(pieces))
