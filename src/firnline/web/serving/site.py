"""The whole page as one application: its routes, who passes, and what an error becomes."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from firnline.errors import FirnlineError
from firnline.web.html.document import static_text
from firnline.web.html.shell import address
from firnline.web.serving.actions import PageActions
from firnline.web.serving.answers import Answers
from firnline.web.serving.api import Api, FactsResponse
from firnline.web.serving.gate import Gate, Guarded, NotAllowed
from firnline.web.serving.index import LakeIndex, OpenLake
from firnline.web.serving.pages import Pages
from firnline.web.serving.statuses import headers_of_problem, status_of_problem

_KINDS = {"page.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"}
_OPEN = ("/login", "/healthz", *(f"/static/{name}" for name in _KINDS))
"""What takes no token, wherever the request comes from."""
_OWN = "an error of firnline's own"


def site_of(open_lake: OpenLake, index: LakeIndex, gate: Gate) -> ASGIApp:
    """Returns the application. Nothing is looked at before it is asked for."""
    answers = Answers(open_lake, index)
    actions = PageActions(open_lake, answers.changed)
    pages, api = Pages(answers, actions, gate), Api(answers, actions, gate)

    def failed(request: Request, problem: Exception) -> Response:
        if not isinstance(problem, FirnlineError):
            logging.getLogger("firnline").error("%s %s", request.method, request.url.path, exc_info=problem)
        told = problem if isinstance(problem, FirnlineError) else FirnlineError(_OWN, "see the log of `firnline serve`")
        status = status_of_problem(told) if isinstance(problem, FirnlineError) else 500
        if request.url.path.startswith("/api/"):
            return FactsResponse({"error": told.to_json()}, status, headers_of_problem(told))
        return pages.problem(request, told) if status != 500 else PlainTextResponse(f"{_OWN}\n", 500)

    def missing(request: Request, problem: Exception) -> Response:
        status = problem.status_code if isinstance(problem, HTTPException) else 404
        if request.url.path.startswith("/api/"):
            error = {"kind": "usage", "message": "no such call", "hint": "/openapi.json has all of them"}
            return FactsResponse({"error": error}, status, getattr(problem, "headers", None))
        return PlainTextResponse("no such page\n", status, getattr(problem, "headers", None))

    handlers: Any = {FirnlineError: failed, HTTPException: missing, Exception: failed}
    routes = [*_pages(pages), *api.routes(), *_static(), Route("/healthz", _healthz)]
    app = Starlette(routes=routes, exception_handlers=handlers)
    return Guarded(_Reading(app, gate, failed), gate.hosts)


class _Reading:
    """Lets only those read who may."""

    def __init__(self, app: ASGIApp, gate: Gate, failed: Callable[[Request, Exception], Response]) -> None:
        self._app, self._gate, self._failed = app, gate, failed

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["path"] in _OPEN:
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        try:
            passes: Any = self._app if self._gate.may_read(request) else self._refused(request)
        except NotAllowed as problem:
            passes = self._failed(request, problem)
        await passes(scope, receive, send)

    def _refused(self, request: Request) -> Response:
        if request.url.path.startswith("/api/") or request.method not in ("GET", "HEAD"):
            return self._failed(request, NotAllowed("this takes the token", 401, hint="log in first"))
        asked = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(address("/login", next=f"{request.url.path}{asked}"), 303)


def _pages(pages: Pages) -> list[Route]:
    shown = {
        "/": pages.lake, "/table": pages.table, "/plan": pages.plan, "/runs": pages.runs, "/run": pages.run,
        "/savings": pages.savings, "/tiers": pages.tiers, "/why": pages.why, "/login": pages.login,
    }  # fmt: skip
    done: dict[str, Callable[[Request], Awaitable[Response]]] = {
        "/login": pages.logged_in, "/logout": pages.logged_out, "/do/plan": pages.do_plan,
        "/do/approve": pages.do_approve, "/do/undo": pages.do_undo, "/do/hold": pages.do_hold,
        "/do/release": pages.do_release,
    }  # fmt: skip
    looks = [Route(path, page, methods=["GET"]) for path, page in shown.items()]
    return [*looks, *(Route(path, page, methods=["POST"]) for path, page in done.items())]


def _static() -> list[Route]:
    """Returns the files that a page needs, each by its own name: no path is ever made of what was asked for."""

    def served(name: str) -> Route:
        def answer(request: Request) -> Response:
            return Response(static_text(name), media_type=_KINDS[name])

        return Route(f"/static/{name}", answer)

    return [served(name) for name in _KINDS]


async def _healthz(request: Request) -> Response:
    """Answers from the loop itself: threads that wait for a slow table do not make the process look dead."""
    return JSONResponse({"ok": True})
