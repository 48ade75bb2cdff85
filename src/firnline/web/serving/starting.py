"""Starting the page: where it listens, who may ask, and until when it runs."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from firnline.errors import UsageError
from firnline.extras import require
from firnline.observing.serving import parse_listen
from firnline.own_files import read_own
from firnline.web.serving.index import OpenLake

if TYPE_CHECKING:
    from firnline.web.serving.gate import Gate

TOKEN = "FIRNLINE_PAGE_TOKEN"
SHORTEST_TOKEN = 16
_ANYWHERE = ("0.0.0.0", "::", "")


@dataclass(frozen=True, slots=True)
class Serving:
    """How the page is served. `names` are those under which browsers reach it, beside its own address: where there are
    any, a proxy may stand before the page, and its requests all come from this machine.
    """

    listen: str
    token: str | None
    names: tuple[str, ...] = ()
    every_s: float = 600.0
    config: str | None = None


def token_of(file: Path | None) -> str | None:
    """Returns the token: of a file, or of FIRNLINE_PAGE_TOKEN; None where there is neither. Raises UsageError for one
    that can be guessed, and for a file that others may write to.
    """
    said = os.environ.get(TOKEN) if file is None else _of_file(file)
    if said is None:
        return None
    token = said.strip()
    if len(token) < SHORTEST_TOKEN:
        raise UsageError(f"the token is shorter than {SHORTEST_TOKEN} letters", hint="`openssl rand -hex 24` makes one")
    return token


def _of_file(file: Path) -> str:
    try:
        found = read_own(file)
    except OSError as problem:
        raise UsageError(f"{file} cannot be read: {problem.strerror}", hint="it has the token") from problem
    if found is None:
        raise UsageError(f"{file} is not yours alone", hint=f"chmod 600 {file}")
    return found.decode(errors="replace")


def serve_page(serving: Serving, open_lake: OpenLake) -> None:
    """Serves until it is told to stop. Raises UsageError where it cannot listen, or where others than this machine
    would reach it without a token.
    """
    require("page", "`firnline serve`")
    import uvicorn

    from firnline.web.serving.index import LakeIndex
    from firnline.web.serving.site import site_of

    host, port = parse_listen(serving.listen)
    gate = gate_of(host, serving)
    index = LakeIndex(open_lake, serving.config, serving.every_s)
    index.list_names()
    index.start()
    with _listening(host, port) as place:
        shown = f"[{host}]" if ":" in host else host
        print(f"http://{shown}:{place.getsockname()[1]}/", file=sys.stderr, flush=True)
        settings = uvicorn.Config(
            site_of(open_lake, index, gate), log_level="warning", access_log=False, server_header=False,
            proxy_headers=False, lifespan="off", ws="none", limit_concurrency=200, timeout_keep_alive=5,
            timeout_graceful_shutdown=5,
        )  # fmt: skip
        try:
            uvicorn.Server(settings).run(sockets=[place])
        finally:
            index.stop()


def gate_of(host: str, serving: Serving) -> Gate:
    """Returns who may look and who may act. Raises as `refuse_open`. The address alone tells nothing of who reads: a
    proxy on this machine brings the requests of everyone, so a page with another name takes the token.
    """
    from firnline.web.serving.gate import Gate, is_loopback

    home = is_loopback(host)
    refuse_open(host, home, serving)
    return Gate(serving.token, home and not serving.names, hosts_of(host, serving.names))


def refuse_open(host: str, home: bool, serving: Serving) -> None:
    """Raises UsageError where anyone on the network would read what is here, or where no name says whom to answer."""
    if home and serving.names and serving.token is None:
        raise UsageError(
            f"{serving.names[0]} is not this machine alone, and no token is set",
            hint=f"set {TOKEN}, or leave out --name",
        )
    if home:
        return
    if serving.token is None:
        raise UsageError(
            f"{host or 'every address'} is not this machine alone, and no token is set",
            hint=f"set {TOKEN}, or listen at 127.0.0.1",
        )
    if host in _ANYWHERE and not serving.names:
        raise UsageError(
            "the page would be at every address of this machine, by any name",
            hint="`--name HOST` says by which name browsers reach it",
        )


def hosts_of(host: str, names: Iterable[str]) -> frozenset[str]:
    """Returns the names of hosts that requests may be for."""
    own = {"localhost", "127.0.0.1", "::1"}
    return frozenset({*own, *(each.lower() for each in names), *(() if host in _ANYWHERE else (host.lower(),))})


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    place = socket.socket(family, socket.SOCK_STREAM)
    try:
        place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        place.bind((host, port))
        place.listen(128)
    except OSError as problem:
        place.close()
        raise UsageError(f"cannot listen at {host}:{port}: {problem.strerror}", hint="name another port") from problem
    return place
