"""What is sent to S3 and what comes back, before it is signed and after it was read. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import quote
from xml.etree import ElementTree

_NONE: Mapping[str, str] = MappingProxyType({})


class WireRequest(NamedTuple):
    """One request. `operation` is S3's name of it; `query` is written as it goes over the wire."""

    operation: str
    method: str
    bucket: str
    name: str = ""
    query: str = ""
    headers: Mapping[str, str] = _NONE
    body: bytes | memoryview = b""


class WireAnswer(NamedTuple):
    """What a store said, as it came. Headers are found in any spelling."""

    headers: Mapping[str, str]
    body: bytes


def escaped(name: str) -> str:
    """Returns the name of an object as addresses and headers spell it."""
    return quote(name, safe="/~")


def fields_of(body: bytes, root: str) -> dict[str, str] | None:
    """Returns the fields of an answer whose outmost element this is; None for any other. A server that takes long sends
    blanks first, so that nobody hangs up.
    """
    try:
        found = ElementTree.fromstring(body.strip())
    except ElementTree.ParseError:
        return None
    if _local(found.tag) != root:
        return None
    return {_local(each.tag): each.text or "" for each in found}


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]
