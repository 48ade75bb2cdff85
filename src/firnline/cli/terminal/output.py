"""The Output port: commands say what they have, and never print."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, Protocol, TextIO

from firnline.cli.terminal.manners import is_quiet
from firnline.cli.terminal.progress import clean_line
from firnline.cli.terminal.saying import written
from firnline.cli.terminal.writing import text_of
from firnline.errors import FirnlineError, Interrupted
from firnline.foreign import ascii_json, harmless_json
from firnline.plans.pages import Hint, Line, Page, Tone
from firnline.settings import logs_json


class Output(Protocol):
    def show(self, page: Page, facts: Mapping[str, Any]) -> None:
        """Says a result: as a page for people, or as facts for programs."""
        ...

    def fail(self, problem: FirnlineError) -> None:
        """Says why a command could not do its work, and what would help."""
        ...


class TextOutput:
    def show(self, page: Page, facts: Mapping[str, Any]) -> None:
        clean_line()
        with written():
            print(text_of(page.without_hints() if is_quiet() else page, sys.stdout))

    def fail(self, problem: FirnlineError) -> None:
        clean_line()
        said = Line(f"error: {problem.message}", Tone.REFUSED)
        page = Page((said, Hint(problem.hint)) if problem.hint else (said,))
        print(text_of(page, sys.stderr), file=sys.stderr)


class JsonOutput:
    def show(self, page: Page, facts: Mapping[str, Any]) -> None:
        with written():
            _write(sys.stdout, facts, indent=2)

    def fail(self, problem: FirnlineError) -> None:
        _write(sys.stderr, {"error": problem.to_json()})


class LoggedOutput(TextOutput):
    """Results for people, and errors as a line of the log that programs gather."""

    def fail(self, problem: FirnlineError) -> None:
        _write(sys.stderr, {"level": "error", "event": "error", "error": problem.to_json()})


_SOME = 8_192
"""Words of JSON that are written at a time: those of a thousand plans, as one text, would be the most that is held."""


def _write(target: TextIO, facts: Mapping[str, Any], indent: int | None = None) -> None:
    words = json.JSONEncoder(indent=indent, ensure_ascii=False).iterencode(facts)
    while some := "".join(islice(words, _SOME)):
        target.write(_fitting(target, some))
    target.write("\n")


def _fitting(target: TextIO, text: str) -> str:
    """Returns the same JSON, with what the target does not have, or would obey, as JSON's own escapes."""
    text = harmless_json(text)
    try:
        text.encode(target.encoding or "utf-8")
    except UnicodeEncodeError:
        return ascii_json(text)
    return text


def exit_code_of(problems: Iterable[FirnlineError | None]) -> int:
    """Returns the exit code of the first of several tables or catalogs that failed, 0 if none did; that of a stop where
    one ended the command, whatever failed before.
    """
    failed = [each for each in problems if each is not None]
    stopped = [each for each in failed if isinstance(each, Interrupted)]
    return next((each.exit_code for each in (*stopped, *failed)), 0)


def output_for(as_json: bool) -> Output:
    if as_json:
        return JsonOutput()
    return LoggedOutput() if logs_json() else TextOutput()
