"""Text that others wrote, before a person sees it: names of refs, properties, what a server or a driver says.

Two things must not get out with it: the passwords of addresses, and signs by which a terminal is told to move, to
recolour, to turn the direction of writing, or to answer.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote, quote_plus, unquote, urlsplit

HIDDEN = "***"

_PORT = r"\d{1,5}(?=[/?#\s\"']|$)"
_PASSWORD = re.compile(rf"(?<=://)[^/\s@:?#]*:(?!{_PORT})[^\s\"'<>]*(?=@)")
_USER = re.compile(r"(?i)(https?://)[^/\s\"'<>]+(?=@)")
_TELLING = r"pass|pwd|secret|token|credential|key|sig|sas|auth"
_OPTION = re.compile(rf"(?i)(?<=[?&;])([\w.\-]*(?:{_TELLING})[\w.\-]*=)[^&;\s\"'<>#]+")

_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Control characters, those that turn the direction of writing, those without a width, and halves of characters."""
_BEYOND_ASCII = re.compile("[^\x00-\x7f]")


def concealed(text: str) -> str:
    """Returns the text with every address in it as others may see it: no password, no user of a web address, and no
    option whose name tells that it is secret. A bucket's or container's name before an @ stays.
    """
    if "://" not in text:
        return text
    return _OPTION.sub(rf"\1{HIDDEN}", _USER.sub(rf"\1{HIDDEN}", _PASSWORD.sub(HIDDEN, text)))


def is_address(text: str, *schemes: str) -> bool:
    """Tells whether a text is the address of a server. Of one that is none libraries make a traceback, or a panic; and
    no error may repeat it: what is no address may still hold a password.
    """
    try:
        parts = urlsplit(text.encode().decode())
        sound = parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets that do not close, a port that is no number, half a character
        return False
    return sound and text.isprintable() and " " not in text


def passwords_in(text: str) -> list[str]:
    """Returns the passwords in the addresses of a text, and the values of telling options, as they stand there."""
    if "://" not in text:
        return []
    options = [found[0].partition("=")[2] for found in _OPTION.finditer(text)]
    return [found.partition(":")[2] for found in _PASSWORD.findall(text)] + options


_SETTING = re.compile(r"secret|password|passwd|token|credential|key|sas|signature|auth", re.IGNORECASE)
_OPEN = re.compile(
    r"(?:[._-]|^)(?:type|uri|url|endpoint|region|server|scope|style|impl|alias|enabled|username|client[._-]id|access[._-]key[._-]id|token[._-]file|auth[._-]sock)$",
    re.IGNORECASE,
)
"""How names end that tell of no secret: who asks, and where something is. The id of a key is sent openly with each
request, and may be the name of a product, `minio`, of which words and buckets are then made.
"""
_SHORTEST = 4
"""Anything shorter would hide letters of ordinary words."""
_BASE64 = 8


def secrets_in(settings: Iterable[tuple[str, str]]) -> list[str]:
    """Returns the values that nobody should see: of telling names, and passwords inside addresses. Of a credential with
    a colon the part before it is a name.
    """
    found = []
    for name, value in settings:
        if _SETTING.search(name) and not _OPEN.search(name):
            found += [value, value.rpartition(":")[2]] if "credential" in name.lower() else [value]
        found += passwords_in(value)
    return found


class Veil:
    """Hides secrets in texts: those that it was told of in any spelling, and passwords in addresses.

    Messages are worded without secrets; this is for what libraries and servers say in their errors, which may quote all
    that they were sent.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        spelled = {form for each in secrets if len(each) >= _SHORTEST for form in _spellings(each)}
        longest_first = sorted(spelled, key=len, reverse=True)
        self._secrets = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def over(self, text: str) -> str:
        hidden = self._secrets.sub(HIDDEN, text) if self._secrets else text
        return concealed(hidden)


def _spellings(secret: str) -> set[str]:
    """Returns how a secret may be written: by addresses, by Python, by JSON, and inside of base64 (`Basic …`)."""
    plain = {secret, unquote(secret)}
    written = {form for each in plain for form in (each, quote(each, safe=""), quote(each), quote_plus(each))}
    return {*written, repr(secret)[1:-1], json.dumps(secret)[1:-1], *_in_base64(unquote(secret)), *_in_base64(secret)}


def _in_base64(secret: str) -> Iterator[str]:
    """Yields the letters of base64 that a secret alone decides, for each number of bytes that may stand before it."""
    data = secret.encode("utf-8", "surrogatepass")
    for before in range(3):
        whole = b64encode(bytes(before) + data).decode()
        own = whole[-(-before * 8 // 6) : (before + len(data)) * 8 // 6]
        if len(own) >= _BASE64:
            yield from (own, own.replace("+", "-").replace("/", "_"))


def harmless(text: str) -> str:
    """Returns the text for a terminal, in one line: what would act on it instead of being read is written as Python
    writes it (`\\x1b`).
    """
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def json_bytes(value: Any, **form: Any) -> bytes:
    """Returns the value as JSON in UTF-8: readable, and with half of a pair of surrogates, which is no letter but which
    JSON can say, as JSON's own escape.
    """
    return json.dumps(value, ensure_ascii=False, **form).encode("utf-8", "backslashreplace")


def json_of(value: Any, **form: Any) -> str:
    return json_bytes(value, **form).decode()


def harmless_json(text: str) -> str:
    """Returns the very same JSON with such characters, which only texts in it can have, as JSON's own escapes."""
    return _UNSEEN.sub(lambda found: found[0] if found[0] in "\n\t\r" else _escaped(found[0]), text)


def ascii_json(text: str) -> str:
    """Returns the very same JSON for a terminal or a file that has no other letters."""
    return _BEYOND_ASCII.sub(lambda found: _escaped(found[0]), text)


def _escaped(character: str) -> str:
    pairs = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{pairs[at]:02x}{pairs[at + 1]:02x}" for at in range(0, len(pairs), 2))
