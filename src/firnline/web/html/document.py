"""A whole document: what stands around every page and report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files

from firnline.plans.html.markup import Markup, element, joined
from firnline.version import VERSION


@cache
def static_text(name: str) -> str:
    """Returns a file that comes with this package."""
    return (files("firnline.web") / "static" / name).read_text(encoding="utf-8")


def document(title: str, head: Iterable[str], *body: str) -> Markup:
    """Returns a document in one language, for every width of a screen."""
    first = element(
        "head",
        Markup('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        element("title", title),
        *head,
    )
    return Markup(f"<!doctype html>\n{element('html', first, element('body', *body), lang='en')}\n")


def self_contained(title: str, *main: str) -> Markup:
    """Returns a document that needs nothing else: no script, no address, its style inside."""
    style = element("style", Markup(static_text("page.css")))
    foot = element("footer", f"made by firnline {VERSION}; times are UTC")
    return document(title, [style], element("main", element("h1", title), *main), foot)


def section(title: str, *inside: str, id_: str = "") -> Markup:
    named = {"id": id_} if id_ else {}
    return element("section", element("h2", title), *inside, **named)


def figure_list(**said: str) -> Markup:
    """Returns headline figures, each with its name; an underscore in the name stands for a space."""
    parts = (
        element("div", element("dt", name.replace("_", " ")), element("dd", value)) for name, value in said.items()
    )
    return element("dl", *parts, class_="figures")


def rows_of(
    headings: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int] = (), caption: str = ""
) -> Markup:
    """Returns a table that stacks on a narrow screen; columns in `numbers` align right."""
    right = set(numbers)

    def cell(kind: str, at: int, inside: str, **more: str) -> Markup:
        return element(kind, inside, **more, **({"class_": "number"} if at in right else {}))

    head = element("tr", *(cell("th", at, each, scope="col") for at, each in enumerate(headings)))
    body = (element("tr", *(cell("td", at, each, data_of=headings[at]) for at, each in enumerate(row))) for row in rows)
    said = [element("caption", caption)] if caption else []
    return element("table", *said, element("thead", head), element("tbody", *body), class_="stacks")


def fields(**hidden: str) -> Markup:
    """Returns values that a form sends along."""
    return joined(
        Markup(f'<input type="hidden"{_attributes(name=name, value=value)}>') for name, value in hidden.items()
    )


def text_field(label: str, name: str, value: str = "", kind: str = "text", *, required: bool = False) -> Markup:
    """Returns a field to write in, with its label."""
    told = _attributes(type=kind, name=name, value=value, maxlength="2000", autocomplete="off")
    return element("label", label, Markup(f"<input{told}{' required' if required else ''}>"))


def _attributes(**said: str) -> str:
    made = element("i", **said)
    return made.removeprefix("<i").removesuffix("></i>")
