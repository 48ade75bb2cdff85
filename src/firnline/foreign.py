"""Text that others wrote, before a person sees it: names of refs, properties, what a server or a driver says.

Two things must not get out with it: the passwords of addresses, and signs by which a terminal is told to move, to
recolour, to turn the direction of writing, or to answer.
"""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import urlsplit

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
