"""What a REST catalog is asked with: PyIceberg's properties, merged with what the server says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit, urlunsplit

from firnline.errors import UnsupportedFormat, UsageError
from firnline.foreign import Veil, is_address, secrets_in

_SILENCE_S = 25.0
_SEPARATOR = "\x1f"
_AUTH_TYPES = ("noop", "basic", "oauth2")


@dataclass(frozen=True, slots=True)
class RestSettings:
    """The properties of one REST catalog. They hold credentials, so none of them is ever shown. `given` are the tokens
    that its server handed out, which are secrets as well.
    """

    name: str
    properties: Mapping[str, str] = field(repr=False)
    given: set[str] = field(repr=False, compare=False, default_factory=set)

    def __post_init__(self) -> None:
        if not is_address(self.uri, "http", "https"):
            raise UsageError(f"the uri of catalog {self.name} is not the address of a server", "such as https://HOST")
        if self.properties.get("rest.sigv4-enabled", "").lower() == "true":
            raise UnsupportedFormat(
                f"catalog {self.name} wants signed requests (rest.sigv4-enabled)", "firnline sends a token"
            )
        if (kind := self.properties.get("auth.type", "noop")) not in _AUTH_TYPES:
            raise UnsupportedFormat(
                f"catalog {self.name} signs in by {kind!r} (auth.type)", f"supported are {', '.join(_AUTH_TYPES)}"
            )

    @property
    def uri(self) -> str:
        return self.properties["uri"].rstrip("/")

    @property
    def shown_uri(self) -> str:
        """The address for people to read, without a user's name and password."""
        parts = urlsplit(self.uri)
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment=""))

    @property
    def who(self) -> str:
        """The server in the words of messages."""
        return f"catalog {self.name} at {self.shown_uri}"

    @property
    def prefix(self) -> str:
        prefix = self.properties.get("prefix", "").strip("/")
        return f"/{prefix}" if prefix else ""

    @property
    def separator(self) -> str:
        """What stands between the levels of a namespace in an address, not yet encoded."""
        return unquote(self.properties.get("namespace-separator", _SEPARATOR)) or _SEPARATOR

    @property
    def headers(self) -> dict[str, str]:
        own = {name.removeprefix("header."): value for name, value in self.properties.items() if _is_header(name)}
        return {"X-Iceberg-Access-Delegation": "vended-credentials", "Content-Type": "application/json", **own}

    @property
    def verify(self) -> str | bool:
        return self.properties.get("ssl.cabundle") or True

    @property
    def certificate(self) -> str | tuple[str, str] | None:
        certificate, key = self.properties.get("ssl.client.cert"), self.properties.get("ssl.client.key")
        return (certificate, key) if certificate and key else certificate

    @property
    def page_size(self) -> str | None:
        return self.properties.get("rest-page-size")

    @property
    def timeout_s(self) -> float:
        """How long one answer may take; `rest.timeout-ms`, half a minute where it is not set."""
        text = self.properties.get("rest.timeout-ms", "30000")
        try:
            return int(text) / 1000
        except ValueError as error:
            raise UsageError(f"catalog {self.name}: rest.timeout-ms is {text!r}", "write milliseconds") from error

    @property
    def silence_s(self) -> float:
        """How long a server may be silent to a request that only reads, over all tries: longer only where
        `rest.timeout-ms` says so. A change waits its whole time: what cuts it off leaves its outcome unknown.
        """
        return max(_SILENCE_S, self.timeout_s) if "rest.timeout-ms" in self.properties else _SILENCE_S

    def merged(self, defaults: Mapping[str, str], overrides: Mapping[str, str]) -> RestSettings:
        """Returns the settings with the server's: what it offers counts least, what it insists on most."""
        return RestSettings(self.name, {**defaults, **self.properties, **overrides}, self.given)

    def hidden(self, text: str) -> str:
        """Returns the text without any secret that it may repeat, in any spelling: a server's error can quote a
        request, with a token that the server itself gave.
        """
        headers = [value for name, value in self.properties.items() if _is_header(name)]
        return Veil([*secrets_in(self.properties.items()), *headers, *self.given]).over(text)


def _is_header(name: str) -> bool:
    return name.startswith("header.")
