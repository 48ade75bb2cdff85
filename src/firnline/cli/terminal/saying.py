"""What becomes of words that cannot be written where they should go."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from firnline.errors import FirnlineError


@contextmanager
def written() -> Iterator[None]:
    """Makes an error of ours of a stdout or a file that takes no more. That its reader went away is another matter."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as problem:
        if problem.filename is not None:
            raise FirnlineError(f"{problem.filename} cannot be written: {problem.strerror}") from problem
        said = f"the answer cannot be written to stdout: {problem.strerror}"
        raise FirnlineError(said, hint="only the answer is lost: `firnline runs` shows what was done") from problem


class Written:
    """A command or a group whose `--help`, or whatever else is said before it begins, may find no place to go."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        with written():
            rest: list[str] = super().parse_args(ctx, args)  # type: ignore[misc]
        return rest
