"""Finding and reading firnline.yaml, and the FIRNLINE_* environment."""

from __future__ import annotations

import os
from contextvars import ContextVar
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from firnline.errors import PolicyError, UsageError
from firnline.foreign import is_address
from firnline.own_files import own_cache, own_config
from firnline.policy.limits import StoreLimits
from firnline.policy.parse import Section, parse_policy

NAME = "firnline.yaml"
_TOKEN = 8
"""Parts of a path that are shorter are words, and no tokens."""


def read_config(named: str | None) -> Section:
    """Returns what the configuration file says; nothing where there is none and none was named.

    Looked for in this order: `--config` or FIRNLINE_CONFIG, ./firnline.yaml, the user's configuration folder.
    """
    found = find_config(named)
    return Section() if found is None else _read(found)


def find_config(named: str | None) -> Path | None:
    """Returns the file that counts, whether or not it can be read; None where there is none and none was named."""
    asked = named or os.environ.get("FIRNLINE_CONFIG")
    if asked:
        return Path(asked)
    return next((path for path in (Path(NAME), own_config() / NAME) if path.is_file()), None)


def cache_setting(config: Section) -> tuple[str, bool]:
    """Returns which cache remembers expansions, as FIRNLINE_CACHE or else the file says, or `disk`; and whether either
    says so.
    """
    written = config.settings.get("cache")
    said = os.environ.get("FIRNLINE_CACHE") or (written.value if written else None)
    return said or "disk", said is not None


def trusted_snapshots(config: Section) -> frozenset[str]:
    """Returns the snapshots whose manifest lists the file says are whole, whatever their summaries say."""
    written = config.settings.get("trust-snapshots")
    return frozenset() if written is None else written.value


def backups_ms(config: Section) -> int | None:
    """Returns for how long earlier versions of metadata are kept that writers leave behind; None for ever."""
    written = config.settings.get("backups")
    return None if written is None else written.value


def audit_setting(config: Section) -> str | None:
    """Returns the location of the audit log; None if no log is kept."""
    written = config.settings.get("audit")
    return None if written is None else written.value


def webhook_setting(config: Section) -> str | None:
    """Returns the address that is told of every stage: FIRNLINE_WEBHOOK, else the file. It may hold a secret. Raises
    UsageError where it is no address.
    """
    written = config.settings.get("webhook")
    said = os.environ.get("FIRNLINE_WEBHOOK") or (written.value if written else None)
    if said is not None and not is_address(said, "http", "https"):
        raise UsageError("FIRNLINE_WEBHOOK is no address", hint="write https://HOST/PATH")
    return said


def webhook_secrets(config: Section) -> list[str]:
    """Returns the parts of the webhook's address that may be secrets: all but its host. Those who send news to a chat
    have the token in the path.
    """
    written = config.settings.get("webhook")
    said = [os.environ.get("FIRNLINE_WEBHOOK"), written.value if written else None]
    parts = [urlsplit(each) for each in said if each and is_address(each, "http", "https")]
    named = [value for part in parts for _, value in parse_qsl(part.query)]
    folders = [folder for part in parts for folder in part.path.split("/") if len(folder) >= _TOKEN]
    return [*named, *folders, *(part.password for part in parts if part.password)]


JSON, TEXT = "json", "text"
LOG: ContextVar[str | None] = ContextVar("log", default=None)
"""What `--log` says, for the time of one command."""


def log_form() -> str:
    """Returns how stages are logged: `--log`, else FIRNLINE_LOG, else as text. Raises UsageError for anything else."""
    said = LOG.get() or os.environ.get("FIRNLINE_LOG") or TEXT
    if said not in (JSON, TEXT):
        raise UsageError(f"no such form of a log: {said!r}", hint="--log, or FIRNLINE_LOG, is json or text")
    return said


def logs_json() -> bool:
    """Tells whether what goes to stderr is to be JSON. A form that does not exist is for `log_form` to refuse."""
    return (LOG.get() or os.environ.get("FIRNLINE_LOG")) == JSON


def store_limits(config: Section) -> StoreLimits:
    """Returns what the file lets stores be asked for."""
    return StoreLimits.of(config.stores)


def cache_folder() -> Path:
    return own_cache("units")


def _read(path: Path) -> Section:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise PolicyError(f"there is no {path}", hint="name a file with --config, or with FIRNLINE_CONFIG") from None
    except UnicodeDecodeError as problem:
        line = problem.object.count(b"\n", 0, problem.start) + 1
        raise PolicyError(f"{path}:{line} is not UTF-8", hint="save the file as UTF-8") from problem
    except OSError as problem:
        said = problem.strerror or problem
        raise PolicyError(f"cannot read {path}: {said}", hint="name another file with --config") from problem
    return parse_policy(text, str(path))
