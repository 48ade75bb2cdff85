"""The pages, as a browser asks for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from firnline.errors import FirnlineError
from firnline.journal.events import RunState
from firnline.ops.tiers.whereabouts import tiers_page
from firnline.plans.html.markup import Markup, element, paragraph
from firnline.web.html.document import text_field
from firnline.web.html.lake import lake_main, runs_main, savings_main, why_main
from firnline.web.html.runs import MOVING, run_sections
from firnline.web.html.shell import address, age_in_words, login_form, post, served, told
from firnline.web.html.tables import TableLinks, plan_body, table_sections
from firnline.web.serving.actions import PageActions, may_approve
from firnline.web.serving.answers import Answers
from firnline.web.serving.gate import COOKIE, Gate, NotAllowed, address_of
from firnline.web.serving.sessions import LONGEST_S, Session
from firnline.web.serving.statuses import headers_of_problem, status_of_problem

if TYPE_CHECKING:
    from firnline.model.holds import Hold
    from firnline.ops.runs.status import RunStatus

Form = Mapping[str, str]
_DRAWN = 64


@dataclass(frozen=True, slots=True)
class Pages:
    """Every page. What only shows is made in a thread; what does something comes as a form, and leads on to a page."""

    answers: Answers
    actions: PageActions
    gate: Gate
    drawn: dict[tuple[str, int, str], Markup] = field(default_factory=dict)
    """Tables as they were drawn for a session: a graph of thousands takes its time."""

    # ---- looking

    def lake(self, request: Request) -> Response:
        asked = request.query_params
        number = asked.get("page", "1")
        page = int(number) if number.isdecimal() and len(number) < 7 else 1
        view, sums = self.answers.lake(asked.get("q", ""), asked.get("sort", ""), page)
        index = self.answers.index
        return self._page(request, "Tables", *lake_main(view, sums, index.costs, index.trouble, self._age()))

    def table(self, request: Request) -> Response:
        name = request.query_params.get("name", "")
        report, age = self.answers.table(name)
        session = self.gate.session(request)
        key = (name, report.made_ms, "" if session is None else session.csrf)
        shown = self.drawn.get(key)
        if shown is None:
            shown = table_sections(report, self._links(name, session))
            if len(self.drawn) >= _DRAWN:
                self.drawn.clear()
            self.drawn[key] = shown
        return self._page(request, name, element("p", age_in_words(age), class_="faint"), shown)

    def plan(self, request: Request) -> Response:
        """Shows what a run would free: files are looked for, so it may take a while the first time."""
        name = request.query_params.get("name", "")
        plan, age = self.answers.plan(name)
        session = self.gate.session(request)
        form = "" if session is None else _plan_form(name, session)
        back = element("p", element("a", f"back to {name}", href=address("/table", name=name)))
        return self._page(request, f"Plan of {name}", paragraph(age_in_words(age)), plan_body(plan), form, back)

    def tiers(self, request: Request) -> Response:
        """Shows where history lives and what that costs: files are counted, so it may take a while the first time."""
        name = request.query_params.get("name", "")
        found, age = self.answers.tiers_of(name)
        back = element("p", element("a", f"back to {name}", href=address("/table", name=name)))
        return self._page(
            request, f"Tiers of {name}", paragraph(age_in_words(age)), tiers_page(found, False).to_html(), back
        )

    def runs(self, request: Request) -> Response:
        runs = [run for each in list(self.answers.index.runs.values()) for run in each]
        return self._page(request, "Runs", *runs_main(runs, self._age()))

    def run(self, request: Request) -> Response:
        report = self.answers.run(request.query_params.get("id", ""))
        status, session = report.status, self.gate.session(request)
        live = status.id in self.actions.at_work or status.state in MOVING
        forms = [] if session is None else [element("div", *_run_forms(status, session), class_="actions")]
        trouble = self.actions.troubles.get(status.id)
        said = [] if trouble is None else told(f"it went no further: {trouble.message}", trouble.hint)
        table = str(status.run.plan["table"])
        to_table = element("p", "run of ", element("a", table, href=address("/table", name=table)))
        shown = run_sections(report, live=live, purged=self.actions.purged.get(status.id, 0))
        return self._page(request, status.id, to_table, *said, *forms, shown)

    def savings(self, request: Request) -> Response:
        return self._page(request, "Savings", *savings_main(self.answers.index.savings, self._age()))

    def why(self, request: Request) -> Response:
        name, what = request.query_params.get("table", ""), request.query_params.get("what", "")
        title = "Why is this still here?"
        if not what:
            return self._page(request, title, *why_main(name, what, None))
        try:
            answer, age = self.answers.why(name, what)
            return self._page(request, title, *why_main(name, what, answer, [paragraph(age_in_words(age))]))
        except FirnlineError as problem:
            said = told(problem.message, problem.hint)
            return self._page(request, title, *why_main(name, what, None, said), problem=problem)

    def login(self, request: Request) -> Response:
        form = login_form(request.query_params.get("next", "/"))
        safely = [paragraph("A login is kept over HTTPS alone.")] if self.gate.is_secure(request) else []
        return self._page(request, "Log in", *form, *safely)

    # ---- acting

    async def logged_in(self, request: Request) -> Response:
        form = await form_of(request)
        try:
            if request.headers.get("sec-fetch-site") not in (None, "same-origin", "none"):
                raise NotAllowed("another site sent this form")
            name = self.gate.login(form.get("token", ""), form.get("who", ""), address_of(request))
        except NotAllowed as problem:
            main = login_form(form.get("next", "/"), f"{problem.message}{problem.hint and f': {problem.hint}'}")
            return self._page(request, "Log in", *main, problem=problem)
        answer = RedirectResponse(_own(form.get("next", "/")), 303)
        secure = self.gate.is_secure(request)
        answer.set_cookie(COOKIE, name, LONGEST_S, path="/", secure=secure, httponly=True, samesite="strict")
        return answer

    async def logged_out(self, request: Request) -> Response:
        self.gate.acting(request, await form_of(request))
        self.gate.sessions.end(request.cookies.get(COOKIE))
        answer = RedirectResponse("/", 303)
        answer.delete_cookie(COOKIE, secure=self.gate.is_secure(request), httponly=True, samesite="strict")
        return answer

    async def do_plan(self, request: Request) -> Response:
        def act(form: Form, who: str) -> str:
            return address("/run", id=self.actions.plan(self.answers.known(form.get("table", "")), who))

        return await self._acted(request, act)

    async def do_approve(self, request: Request) -> Response:
        def act(form: Form, who: str) -> str:
            run = self.answers.known_run(form.get("run", ""))
            return address("/run", id=self.actions.approve(run, who, form.get("note") or None).id)

        return await self._acted(request, act)

    async def do_undo(self, request: Request) -> Response:
        def act(form: Form, who: str) -> str:
            return address("/run", id=self.actions.undo(self.answers.known_run(form.get("run", "")), who).id)

        return await self._acted(request, act)

    async def do_hold(self, request: Request) -> Response:
        def act(form: Form, who: str) -> str:
            table = self.answers.known(form.get("table", ""))
            said = (form.get("hold", ""), form.get("snapshot"), form.get("why", ""), form.get("until"))
            self.actions.hold(table, who, *said)
            return f"{address('/table', name=table)}#holds"

        return await self._acted(request, act)

    async def do_release(self, request: Request) -> Response:
        def act(form: Form, who: str) -> str:
            table = self.answers.known(form.get("table", ""))
            self.actions.release(table, who, form.get("hold", ""))
            return f"{address('/table', name=table)}#holds"

        return await self._acted(request, act)

    async def _acted(self, request: Request, act: Callable[[Form, str], str]) -> Response:
        """Returns the way to the page that shows what was done. What is kept of the table is old from then on."""
        form = await form_of(request)
        who = self.gate.acting(request, form)
        table = form.get("table") or form.get("run", "").rpartition("@")[0]

        def waited() -> str:
            with self.answers.waits.of(table):
                return act(form, who)

        try:
            where = await run_in_threadpool(waited)
        finally:
            self.answers.changed(table)
        return RedirectResponse(where, 303)

    # ---- parts

    def problem(self, request: Request, problem: FirnlineError) -> Response:
        return self._page(request, "This was not done", *told(problem.message, problem.hint), problem=problem)

    def _page(self, request: Request, title: str, *main: str, problem: FirnlineError | None = None) -> HTMLResponse:
        session = self.gate.session(request)
        who, csrf = (None, "") if session is None else (session.who, session.csrf)
        shown = served(title, main, who, csrf, may_log_in=self.gate.token is not None)
        if problem is None:
            return HTMLResponse(shown)
        return HTMLResponse(shown, status_of_problem(problem), headers_of_problem(problem))

    def _age(self) -> str:
        looked = self.answers.looked()
        return "the tables are being looked at for the first time" if looked is None else f"as of {looked}"

    def _links(self, table: str, session: Session | None) -> TableLinks:
        def why(snapshot: str) -> str:
            return address("/why", table=table, what=snapshot)

        def run(name: str) -> str:
            return address("/run", id=name)

        look = element("p", element("a", "what a run would free", href=address("/plan", name=table)))
        lives = element("a", "where its history lives, and what that costs", href=address("/tiers", name=table))
        tiers = element("p", lives)
        if session is None:
            return TableLinks(why, run, plan_form=look, tiers=tiers)

        def release(hold: Hold) -> str:
            button = element("button", "release", aria_label=f"release {hold.name}")
            return post("/do/release", session.csrf, button, table=table, hold=hold.name)

        plan = element("div", look, _plan_form(table, session), class_="actions")
        return TableLinks(why, run, release, _hold_form(table, session), plan, tiers)


def _plan_form(table: str, session: Session) -> Markup:
    return post("/do/plan", session.csrf, element("button", "plan a run"), table=table)


def _hold_form(table: str, session: Session) -> Markup:
    return post(
        "/do/hold",
        session.csrf,
        text_field("Hold", "hold", required=True),
        text_field("Snapshot or ref; empty: the whole table", "snapshot"),
        text_field("Why", "why"),
        text_field("Until", "until"),
        element("button", "hold"),
        table=table,
    )


def _run_forms(status: RunStatus, session: Session) -> list[Markup]:
    forms = []
    if may_approve(status):
        approve = element("button", "approve and carry out")
        forms.append(post("/do/approve", session.csrf, text_field("Note", "note"), approve, run=status.id))
    if not status.run.is_finished and status.state is not RunState.PURGING:
        forms.append(post("/do/undo", session.csrf, element("button", "undo"), run=status.id))
    return forms


async def form_of(request: Request) -> dict[str, str]:
    """Returns the fields of a form. Raises NotAllowed for any other body: only forms of a page have these fields."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise NotAllowed("this is no form", 415)
    try:
        return dict(parse_qsl((await request.body()).decode(), keep_blank_values=True, max_num_fields=50))
    except ValueError as strange:
        raise NotAllowed("this form cannot be read", 400) from strange


def _own(path: str) -> str:
    """Returns a path of this page; anything else leads to its beginning."""
    safe = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if safe else "/"
