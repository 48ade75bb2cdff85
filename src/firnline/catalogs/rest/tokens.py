"""Signing in: a token as it is configured, or one that a server gives for a credential, renewed before it ends."""

from __future__ import annotations

import base64
import time
from threading import Lock
from typing import Any

import requests

from firnline.answering import told
from firnline.catalogs.rest.settings import RestSettings
from firnline.errors import BadCredentials, Unreachable, UsageError

_MARGIN_S = 60.0
_SHORTEST_S = 1.0


class Tokens:
    """The value of the header Authorization. One copy may be used by many threads."""

    def __init__(self, settings: RestSettings, session: requests.Session) -> None:
        self._settings = settings
        self._session = session
        self._lock = Lock()
        self._token = settings.properties.get("token")
        self._ends = float("inf")

    @property
    def renewable(self) -> bool:
        """Whether a new token can be had when one is refused."""
        return self._client() is not None

    def header(self) -> str | None:
        """Returns what to send; fetches a token where there is none or where it ends within a minute."""
        properties = self._settings.properties
        if properties.get("auth.type") == "basic":
            return _basic(properties.get("auth.basic.username", ""), properties.get("auth.basic.password", ""))
        with self._lock:
            if self.renewable and (self._token is None or time.monotonic() >= self._ends):
                self._fetch()
            return f"Bearer {self._token}" if self._token else None

    def renew(self, refused: str | None) -> bool:
        """Tells whether there is another token now than the one that was refused."""
        with self._lock:
            if not self.renewable:
                return False
            if f"Bearer {self._token}" == refused:  # else another thread has renewed it already
                self._fetch()
            return True

    def _client(self) -> tuple[str | None, str] | None:
        """Returns the client's id and secret; a credential without a colon is a secret alone."""
        properties = self._settings.properties
        if properties.get("auth.type") == "oauth2":
            return properties.get("auth.oauth2.client_id"), properties.get("auth.oauth2.client_secret", "")
        if credential := properties.get("credential"):
            client, colon, secret = credential.partition(":")
            return (client, secret) if colon else (None, credential)
        return None

    def _fetch(self) -> None:
        said = self._ask()
        token = said.get("access_token")
        if not isinstance(token, str) or not token:
            raise BadCredentials(f"{self._where()} gave no token", "check oauth2-server-uri")
        self._token = token
        self._settings.given.add(token)
        try:
            lasts = float(said.get("expires_in") or "inf")
        except (TypeError, ValueError):
            lasts = float("inf")
        # A token that lasts less than the margin is still used once, not fetched for every request.
        self._ends = time.monotonic() + max(_SHORTEST_S, lasts - min(_MARGIN_S, lasts / 2))

    def _ask(self) -> dict[str, Any]:
        """Returns what the server says. It is asked where it was told to be, and nowhere else: who sends this on to
        another address would get the secret there.
        """
        try:
            with told(self._where()):
                answer = self._session.post(
                    self._address(),
                    data=self._form(),
                    headers={"Content-Type": "application/x-www-form-urlencoded"},
                    timeout=min(self._settings.timeout_s, self._settings.silence_s),
                    allow_redirects=False,
                )
            if answer.is_redirect:
                raise Unreachable(
                    f"no token from {self._where()}: it sends to another address, where the credential is not sent",
                    "set oauth2-server-uri to that address, if it is to be trusted",
                )
            if answer.status_code in (400, 401, 403):
                raise BadCredentials(
                    f"{self._where()} refused the credential of catalog {self._settings.name}",
                    "check credential (CLIENT-ID:SECRET) and scope in .pyiceberg.yaml",
                )
            answer.raise_for_status()
            said = answer.json()
        except (requests.RequestException, ValueError, RecursionError) as error:
            reason = self._settings.hidden(str(error))
            raise Unreachable(f"no token from {self._where()}: {reason}", "check oauth2-server-uri") from None
        return said if isinstance(said, dict) else {}

    def _form(self) -> dict[str, str]:
        client = self._client()
        if client is None:
            raise UsageError(f"catalog {self._settings.name} has no credential", "set credential, or token")
        properties, oauth2 = self._settings.properties, self._settings.properties.get("auth.type") == "oauth2"
        scope = properties.get("auth.oauth2.scope") if oauth2 else properties.get("scope", "catalog")
        form = {"grant_type": "client_credentials", "client_id": client[0], "client_secret": client[1], "scope": scope}
        also = {name: properties.get(name) for name in ("audience", "resource")}
        return {name: value for name, value in {**form, **also}.items() if value is not None}

    def _address(self) -> str:
        properties = self._settings.properties
        named = properties.get("auth.oauth2.token_url") or properties.get("oauth2-server-uri")
        return named or f"{self._settings.uri}/v1/oauth/tokens"

    def _where(self) -> str:
        return RestSettings(self._settings.name, {"uri": self._address()}).shown_uri


def _basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
