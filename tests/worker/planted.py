"""Secrets that are planted in a lake's settings, and the search for them in whatever was written, sent or shown."""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import quote, quote_plus

from harness.servers.process import Server
from harness.servers.s3 import client

NAMES = (
    "database",
    "store",
    "session",
    "credential",
    "token",
    "given",
    "header",
    "basic",
    "user",
    "hook-user",
    "hook-path",
    "hook-query",
    "records-key",
    "cache-key",
    "redis",
    "spans-user",
    "spans-header",
)
"""Where each of them is planted; `given` is a token that a server hands out for a credential."""
SECRETS = {name: f"planted+{name}/5ecret=of&mine" for name in NAMES}
"""With signs that addresses write as %2B, %2F, %3D and %26."""


def forms(secret: str) -> Iterator[bytes]:
    """Yields how a secret may be written: as it is, as addresses and JSON have it, and inside of base64."""
    plain = secret.encode()
    yield from {plain, quote(secret, safe="").encode(), quote_plus(secret, safe="/").encode(), quote(secret).encode()}
    yield json.dumps(secret)[1:-1].replace("/", "\\/").encode()
    yield plain.hex().encode()
    for before in range(3):  # what stands before it moves the letters that it becomes
        whole = base64.b64encode(b"\0" * before + plain)
        core = whole[4 if before else 0 : len(whole) - 4]
        yield from {core, base64.urlsafe_b64encode(b"\0" * before + plain)[4 if before else 0 : len(whole) - 4]}


def leaks(written: Iterable[tuple[str, bytes]]) -> list[tuple[str, str]]:
    """Returns where a secret was found, and which: looked for in the bytes and in what they are compressed from."""
    spelled = {name: list(forms(secret)) for name, secret in SECRETS.items()}
    return [
        (place, name)
        for place, data in written
        for name, each in spelled.items()
        if any(form in layer for layer in _layers(data) for form in each)
    ]


def _layers(data: bytes) -> list[bytes]:
    found = [data]
    for inflate in (gzip.decompress, zlib.decompress):
        with suppress(OSError, EOFError, zlib.error):
            found.append(inflate(data))
    return found


def in_folder(folder: Path, *but: str) -> Iterator[tuple[str, bytes]]:
    """Yields every file of a folder, and each file's name as bytes too."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name not in but:
            yield str(path), path.read_bytes()
            yield f"name of {path}", str(path.relative_to(folder)).encode()


def in_bucket(server: Server, bucket: str) -> Iterator[tuple[str, bytes]]:
    """Yields every object of a bucket, and its name."""
    s3 = client(server)
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        for found in page.get("Contents", ()):
            answer = s3.get_object(Bucket=bucket, Key=found["Key"])
            yield f"{bucket}/{found['Key']}", answer["Body"].read()
            yield f"name of {found['Key']}", json.dumps([found["Key"], answer["Metadata"]]).encode()


@contextmanager
def quoting(store: bool = False) -> Iterator[str]:
    """A server that refuses all but a request for a token, and quotes in its answer everything that it was sent: as a
    REST catalog does, or as a store.
    """

    class Quotes(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode(errors="replace")
            is_sign_in = self.path.endswith("/oauth/tokens")
            said = f"{self.command} {self.path} {dict(self.headers)} {body}"
            status, kind, data = _refusal(said, store)
            if is_sign_in:
                status, data = 200, json.dumps({"access_token": SECRETS["given"], "expires_in": 3600}).encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _answer

        def log_message(self, *said: Any) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Quotes) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


def _refusal(said: str, store: bool) -> tuple[int, str, bytes]:
    if store:
        quoted = said.replace("&", "&amp;").replace("<", "&lt;")
        return 403, "application/xml", f"<Error><Code>AccessDenied</Code><Message>{quoted}</Message></Error>".encode()
    return 400, "application/json", json.dumps({"error": {"message": said, "type": "Bad", "code": 400}}).encode()
