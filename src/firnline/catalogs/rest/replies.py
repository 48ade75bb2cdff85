"""What a server answered, and the error that says so for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import requests

from firnline.catalogs.rest.settings import RestSettings
from firnline.errors import AccessDenied, BadCredentials, ExpiredCredentials, FirnlineError, StoreError, UsageError

LOGIN_ENDED = 419
SIGN_IN = (401, LOGIN_ENDED)


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
        """The server's own words, by the protocol's error model; no more than a line or two of them."""
        words = str(self._error.get("message") or "").splitlines()
        return " ".join(words)[:400] or f"status {self.status}"

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
    who, said = f"catalog {settings.name} at {settings.shown_uri}", settings.hidden(reply.said)
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
