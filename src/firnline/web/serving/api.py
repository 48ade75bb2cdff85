"""The same facts and actions for programs, as JSON; and the OpenAPI document, made from the list of routes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from firnline.errors import UsageError
from firnline.version import VERSION
from firnline.web.serving.actions import PageActions
from firnline.web.serving.answers import Answers
from firnline.web.serving.gate import Gate, NotAllowed

Body = Mapping[str, Any]
Facts = dict[str, Any]
_WRITTEN = 16


class FactsResponse(JSONResponse):
    """Facts as JSON in plain letters: what others wrote may have some that no encoding has."""

    def render(self, content: Any) -> bytes:
        return content if isinstance(content, bytes) else json.dumps(content, allow_nan=False).encode()


@dataclass(frozen=True, slots=True)
class ApiCall:
    """One thing to ask for or to do: its path, what it answers, and the names of what it takes; those with a `?` may be
    left out.
    """

    method: str
    path: str
    summary: str
    takes: tuple[str, ...]
    answer: Callable[[Mapping[str, str]], Facts | bytes]


@dataclass(frozen=True, slots=True)
class Api:
    """Every call. What only shows takes its words from the address; what does something takes them from a JSON object
    with `by`, who acts.
    """

    answers: Answers
    actions: PageActions
    gate: Gate
    written: dict[tuple[str, int], bytes] = field(default_factory=dict)
    """Graphs as they were written: those of thousands of snapshots take their time."""

    def calls(self) -> tuple[ApiCall, ...]:
        return (*self._looking(), *self._acting())

    def _looking(self) -> Iterator[ApiCall]:
        yield ApiCall("get", "/api/tables", "Tables in brief, and their sums", ("q?", "sort?", "page?"), self._tables)
        yield ApiCall("get", "/api/table", "A table, as `report --json`, but plan and tiers", ("name",), self._table)
        yield ApiCall("get", "/api/tiers", "Where history lives: `tiers --json`", ("name",), self._tiers)
        yield ApiCall("get", "/api/graph", "A table before and after a run: `graph --json`", ("name",), self._graph)
        yield ApiCall("get", "/api/plan", "What a run would do: `plan --json`", ("name",), self._plan)
        yield ApiCall("get", "/api/runs", "Runs of all tables: `runs --all --json`", (), self._runs)
        yield ApiCall("get", "/api/run", "One run: `report RUN --json`", ("id",), self._run)
        yield ApiCall("get", "/api/savings", "What runs have deleted, day by day", (), self._savings)
        yield ApiCall("get", "/api/why", "Why something is still here: `why --json`", ("what", "table?"), self._why)

    def _acting(self) -> Iterator[ApiCall]:
        yield ApiCall("post", "/api/do/plan", "Save a plan as a run", ("table", "by"), self._do_plan)
        yield ApiCall("post", "/api/do/approve", "Approve a run, carry it out", ("run", "by", "note?"), self._approve)
        yield ApiCall("post", "/api/do/undo", "Undo a run", ("run", "by"), self._undo)
        held = ("table", "hold", "by", "snapshot?", "why?", "until?")
        yield ApiCall("post", "/api/do/hold", "Hold a snapshot or a table", held, self._hold)
        yield ApiCall("post", "/api/do/release", "Release a hold", ("table", "hold", "by"), self._release)

    def routes(self) -> list[Route]:
        return [*map(self._route, self.calls()), Route("/openapi.json", self._document)]

    def _document(self, request: Request) -> Response:
        return FactsResponse(openapi(self.calls(), has_token=self.gate.token is not None))

    def _route(self, call: ApiCall) -> Route:
        def shown(request: Request) -> Response:
            return FactsResponse(call.answer(taken(call, request.query_params)))

        async def done(request: Request) -> Response:
            said = await body_of(request)
            self.gate.calling(request, str(said.get("by") or ""))
            words = taken(call, said)
            table = words.get("table") or words.get("run", "").rpartition("@")[0]

            def waited() -> Facts | bytes:
                with self.answers.waits.of(table):
                    return call.answer(words)

            try:
                return FactsResponse(await run_in_threadpool(waited))
            finally:
                self.answers.changed(table)

        return Route(call.path, shown if call.method == "get" else done, methods=[call.method.upper()])

    # ---- looking

    def _tables(self, said: Mapping[str, str]) -> Facts:
        page = said.get("page", "1")
        if not (page.isdecimal() and page.isascii() and 0 < len(page) < 7):
            raise UsageError("page is a number")
        view, sums = self.answers.lake(said.get("q", ""), said.get("sort", ""), int(page))
        rows = [each.to_json() for each in view.shown]
        return {
            "looked_at": self.answers.looked(),
            "page": view.page,
            "pages": view.pages,
            "tables": rows,
            "sums": sums,
            "tiers": [each.to_json() for each in self.answers.index.costs],
        }

    def _table(self, said: Mapping[str, str]) -> Facts:
        report, age = self.answers.table(said["name"])
        return {**report.to_json(), "age_s": round(age, 1)}

    def _graph(self, said: Mapping[str, str]) -> bytes:
        report, _ = self.answers.table(said["name"])
        if report.graph is None:
            raise report.problems["graph"]
        key = (report.table, report.made_ms)
        found = self.written.get(key)
        if found is None:
            found = json.dumps(report.graph.to_json()).encode()
            if len(self.written) >= _WRITTEN:
                self.written.clear()
            self.written[key] = found
        return found

    def _plan(self, said: Mapping[str, str]) -> Facts:
        return self.answers.plan(said["name"])[0].to_json()

    def _tiers(self, said: Mapping[str, str]) -> Facts:
        return self.answers.tiers_of(said["name"])[0].to_json()

    def _runs(self, said: Mapping[str, str]) -> Facts:
        return {"runs": [run.to_json() for runs in list(self.answers.index.runs.values()) for run in runs]}

    def _run(self, said: Mapping[str, str]) -> Facts:
        return self.answers.run(said["id"]).to_json()

    def _savings(self, said: Mapping[str, str]) -> Facts:
        return self.answers.index.savings.to_json()

    def _why(self, said: Mapping[str, str]) -> Facts:
        return self.answers.why(said.get("table", ""), said["what"])[0].to_json()

    # ---- acting

    def _do_plan(self, said: Mapping[str, str]) -> Facts:
        return {"run": self.actions.plan(self.answers.known(said["table"]), said["by"])}

    def _approve(self, said: Mapping[str, str]) -> Facts:
        run = self.answers.known_run(said["run"])
        return self.actions.approve(run, said["by"], said.get("note")).to_json()

    def _undo(self, said: Mapping[str, str]) -> Facts:
        return self.actions.undo(self.answers.known_run(said["run"]), said["by"]).to_json()

    def _hold(self, said: Mapping[str, str]) -> Facts:
        table = self.answers.known(said["table"])
        more = (said["hold"], said.get("snapshot"), said.get("why", ""), said.get("until"))
        return self.actions.hold(table, said["by"], *more).to_json()

    def _release(self, said: Mapping[str, str]) -> Facts:
        self.actions.release(self.answers.known(said["table"]), said["by"], said["hold"])
        return {"released": said["hold"]}


def taken(call: ApiCall, said: Body) -> dict[str, str]:
    """Returns the words that a call takes. Raises UsageError where one is missing, or is no text."""
    found = {}
    for each in call.takes:
        name = each.rstrip("?")
        value = said.get(name)
        if value is None and each.endswith("?"):
            continue
        if not isinstance(value, str) or (not value.strip() and not each.endswith("?")):
            raise UsageError(f"{name} is missing, or no text")
        found[name] = value
    return found


async def body_of(request: Request) -> Facts:
    """Returns the JSON object of a request. Raises NotAllowed for anything else: no form of a browser sends it."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise NotAllowed("this is no JSON", 415)
    try:
        said = json.loads(await request.body())
    except (ValueError, RecursionError) as strange:
        raise NotAllowed("this JSON cannot be read", 400) from strange
    if not isinstance(said, dict):
        raise NotAllowed("this is no JSON object", 400)
    return said


_FAILED = {
    "400": "What was asked makes no sense",
    "401": "The token is missing or wrong",
    "403": "Not allowed",
    "404": "No configured catalog has it",
    "409": "Refused for safety, or another process has the table; nothing was changed",
    "413": "Too long",
    "415": "Another type of body is expected",
    "429": "Too many wrong tokens; Retry-After says when to come again",
    "502": "A store or a catalog did not answer",
    "503": "Others wait for this table already; Retry-After says when to come again",
}


def openapi(calls: tuple[ApiCall, ...], *, has_token: bool) -> Facts:
    """Returns the OpenAPI document of the calls."""
    paths: dict[str, Facts] = {}
    for call in calls:
        paths.setdefault(call.path, {})[call.method] = _operation(call)
    return {
        "openapi": "3.1.0",
        "info": {"title": "firnline", "version": VERSION, "description": _about(has_token)},
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Problem": _problem_schema()},
        },
    }


def _about(has_token: bool) -> str:
    acts = "Actions take the token." if has_token else "No token is set: nobody may act."
    return f"What the page shows, with the very fields that the commands print with --json. {acts}"


def _problem_schema() -> Facts:
    text = {"type": "string"}
    error = {"type": "object", "required": ["kind", "message", "hint"],
             "properties": {"kind": text, "message": text, "hint": text}}  # fmt: skip
    return {"type": "object", "required": ["error"], "properties": {"error": error}}


def _operation(call: ApiCall) -> Facts:
    failed = {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    answers: Facts = {
        "200": {"description": "The facts", "content": {"application/json": {"schema": {"type": "object"}}}}
    }
    answers |= {status: {"description": said, "content": failed} for status, said in _FAILED.items()}
    operation: Facts = {
        "operationId": call.path.removeprefix("/api/").replace("/", "-"),
        "summary": call.summary,
        "responses": answers,
    }
    if call.method == "get":
        return operation | {"parameters": [_parameter(each) for each in call.takes]}
    return operation | {"security": [{"token": []}], "requestBody": _request_body(call)}


def _parameter(each: str) -> Facts:
    return {"name": each.rstrip("?"), "in": "query", "required": not each.endswith("?"), "schema": {"type": "string"}}


def _request_body(call: ApiCall) -> Facts:
    schema = {
        "type": "object",
        "required": [each for each in call.takes if not each.endswith("?")],
        "properties": {each.rstrip("?"): {"type": "string"} for each in call.takes},
    }
    return {"required": True, "content": {"application/json": {"schema": schema}}}
