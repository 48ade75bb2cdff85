"""A server in front of an S3 server that breaks its promises: it forgets conditions, or changes what is answered."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import urlsplit

Answer = tuple[int, bytes]
Change = Callable[[str, str, bytes, Answer], Answer]
METHODS = ("GET", "PUT", "POST", "DELETE", "HEAD")
_HOP = ("connection", "transfer-encoding", "content-length", "host", "expect")


def as_it_is(method: str, path: str, body: bytes, answer: Answer) -> Answer:
    return answer


def nothing(method: str, path: str) -> None:
    return


@dataclass
class Careless:
    """`forgets`: request headers that never arrive, with requests of any method or of some. `before` is told of each
    request that is about to be passed on; `change` sees each request and its answer, and may replace it.
    """

    url: str = ""
    forgets: tuple[str, ...] = ()
    forgets_of: tuple[str, ...] = METHODS
    before: Callable[[str, str], None] = nothing
    change: Change = as_it_is
    bodies: list[tuple[str, str, bytes]] = field(default_factory=list)


@contextmanager
def careless(target: str) -> Iterator[Careless]:
    told = Careless()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # else head and body of an answer are 40 ms apart now and then

        def _pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            forgotten = told.forgets if self.command in told.forgets_of else ()
            kept = {k: v for k, v in self.headers.items() if k.lower() not in (*_HOP, *forgotten)}
            told.before(self.command, self.path)
            back = http.client.HTTPConnection(urlsplit(target).netloc, timeout=30)
            back.request(self.command, self.path, body, {**kept, "Content-Length": str(len(body))})
            got = back.getresponse()
            told.bodies.append((self.command, self.path, body))
            status, data = told.change(self.command, self.path, body, (got.status, got.read()))
            self.send_response(status)
            for name, value in got.getheaders():
                if name.lower() not in _HOP:
                    self.send_header(name, value)
            size = got.getheader("content-length", "0") if self.command == "HEAD" else str(len(data))
            self.send_header("Content-Length", size)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)
            back.close()

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass_on

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    told.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, args=[0.02], daemon=True)
    thread.start()
    yield told
    server.shutdown()
    server.server_close()
