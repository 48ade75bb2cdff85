"""What `pip install firnline` leaves out, since much is done without it: `pip install 'firnline[spark]'` brings it."""

from __future__ import annotations

from importlib.util import find_spec

from firnline.errors import UsageError

EXTRAS = {
    "spark": ("pyspark",),
    "s3": ("boto3",),
    "postgres": ("psycopg",),
    "redis": ("redis",),
    "fast": ("numba", "llvmlite"),
    "page": ("starlette", "uvicorn"),
}


def has(extra: str) -> bool:
    """Tells whether all packages of an extra are installed, without importing one."""
    return not _missing(extra)


def require(extra: str, what: str) -> None:
    """Raises UsageError unless all packages of an extra are installed; `what` is done with them."""
    missing = _missing(extra)
    if missing:
        raise UsageError(f"{what} needs {' and '.join(missing)}", hint=how_to_get(extra))


def how_to_get(extra: str) -> str:
    return f"pip install 'firnline[{extra}]'"


def _missing(extra: str) -> list[str]:
    return [package for package in EXTRAS[extra] if find_spec(package) is None]
