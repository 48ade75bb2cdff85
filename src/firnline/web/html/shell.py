"""What stands around every page that is served: the way to the others, and who is logged in."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

from firnline.plans.html.markup import Markup, element, joined, paragraph
from firnline.version import VERSION
from firnline.web.html.document import document, fields, text_field

_HEAD = Markup(
    '<link rel="stylesheet" href="/static/page.css"><link rel="icon" href="/static/icon.svg" type="image/svg+xml">'
    '<script src="/static/page.js" defer></script>'
)
_PAGES = (("/", "Tables"), ("/runs", "Runs"), ("/savings", "Savings"), ("/why", "Why is this here?"))


def address(path: str, **asked: str | int) -> str:
    """Returns an address of this page; names of tables travel as values, whatever letters they have."""
    said = {name: each for name, each in asked.items() if each != ""}
    return f"{path}?{urlencode(said)}" if said else path


def served(title: str, main: Sequence[str], who: str | None, csrf: str = "", *, may_log_in: bool = True) -> Markup:
    """Returns a whole page."""
    links = (element("a", said, href=path) for path, said in _PAGES)
    person = _person(who, csrf) if who is not None else element("a", "log in", href="/login") if may_log_in else ""
    head = element("header", element("strong", "firnline"), *links, element("span", person, class_="who"))
    foot = element("footer", f"firnline {VERSION}; times are UTC; ", element("a", "API", href="/openapi.json"))
    skip = element("a", "skip to the page", class_="skip", href="#main")
    body = element("main", element("h1", title), *main, id="main", tabindex="-1")
    return document(f"{title} - firnline", [_HEAD], skip, head, body, foot)


def _person(who: str, csrf: str) -> Markup:
    out = post("/logout", csrf, element("button", "log out"))
    return joined([f"{who} ", out])


def post(path: str, csrf: str, *inside: str, **hidden: str) -> Markup:
    """Returns a form that does something: it has the word of the session."""
    return element("form", fields(csrf=csrf, **hidden), *inside, method="post", action=path, class_="row")


def ask(path: str, *inside: str) -> Markup:
    """Returns a form that only asks."""
    return element("form", *inside, method="get", action=path, class_="row", role="search")


def login_form(next_: str, problem: str = "") -> list[Markup]:
    said = [element("p", problem, role="alert")] if problem else []
    form = element(
        "form",
        fields(next=next_),
        text_field("Your name, which is written down with what you do", "who", required=True),
        text_field("Token", "token", kind="password", required=True),
        element("button", "log in"),
        method="post",
        action="/login",
    )
    return [*said, form]


def told(message: str, hint: str = "") -> list[Markup]:
    """Returns why something was not done."""
    return [element("p", message, role="alert"), *([paragraph(f"hint: {hint}")] if hint else [])]


def age_in_words(seconds: float) -> str:
    if seconds < 90:
        return f"read {seconds:.0f} s ago"
    return f"read {seconds / 60:.0f} min ago" if seconds < 5400 else f"read {seconds / 3600:.0f} h ago"
