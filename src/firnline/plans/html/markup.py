"""Markup that cannot be broken out of: whatever is not markup by its type is escaped where it is put in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from firnline.foreign import harmless

_CARD = "max-width:64em"
_FIGURE = "display:inline-block;margin:0 2em .5em 0"
_NUMBER = "font-size:1.4em;font-weight:600"
_RIGHT = "text-align:right"


class Markup(str):
    """A text that is markup already. Only this module makes one of a text that others wrote, by escaping it."""

    __slots__ = ()


def escaped(text: str) -> Markup:
    """Returns what shows the text as it is. What others wrote neither ends a tag nor turns the direction of writing."""
    return text if isinstance(text, Markup) else Markup(escape(harmless(text)))


def joined(parts: Iterable[str]) -> Markup:
    return Markup("".join(map(escaped, parts)))


def element(name: str, /, *inside: str, **attributes: str | float) -> Markup:
    """Returns an element; an underscore in an attribute's name stands for a hyphen, one at its end for nothing."""
    said = "".join(f' {key.rstrip("_").replace("_", "-")}="{_value(each)}"' for key, each in attributes.items())
    return Markup(f"<{name}{said}>{joined(inside)}</{name}>")


def _value(value: str | float) -> str:
    return escape(harmless(value)) if isinstance(value, str) else f"{value:.5g}"


def paragraph(*inside: str) -> Markup:
    return element("p", *inside)


def listed(items: Iterable[str]) -> Markup:
    return element("ul", *(element("li", each) for each in items))


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], right: frozenset[int] = frozenset()) -> Markup:
    """Returns rows under their headings; columns named in `right` align right. Each cell says of what it is: a narrow
    page may stack them.
    """
    head = element("thead", element("tr", *_cells("th", headings, (), right)))
    body = (element("tr", *_cells("td", row, headings, right)) for row in rows)
    return element("table", head, element("tbody", *body), class_="stacks")


def _cells(kind: str, row: Sequence[str], headings: Sequence[str], right: frozenset[int]) -> Iterable[Markup]:
    for at, each in enumerate(row):
        said = {"data_of": headings[at]} if at < len(headings) else {}
        yield element(kind, each, **said, **({"style": _RIGHT} if at in right else {}))


def figures(**said: str) -> Markup:
    """Returns headline figures, each over its name; an underscore in the name stands for a space."""
    return element(
        "div",
        *(
            element(
                "span", element("span", value, style=_NUMBER), Markup("<br>"), name.replace("_", " "), style=_FIGURE
            )
            for name, value in said.items()
        ),
    )


def card(title: str, *inside: str) -> Markup:
    """Returns a whole view, ready to be shown beneath a cell."""
    return element("div", element("h4", title), *inside, style=_CARD)
