"""moto: S3 in memory, with archive classes, restore, versions, object lock and (when enforcing) IAM policies."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from harness.servers.process import HOST, Command, Missing, Server, running
from harness.servers.s3 import answers_http, client, s3_settings

_SETTINGS = {"S3_IGNORE_SUBDOMAIN_BUCKETNAME": "true", "AWS_DEFAULT_REGION": "us-east-1"}


@contextmanager
def moto(folder: Path) -> Iterator[Server]:
    """Yields an empty S3 server. It takes any credentials until `enforce` is called."""
    if find_spec("moto") is None:
        raise Missing("moto is not installed (Python package moto[server,s3])")
    with running(Command("moto", _arguments, answers_http, _SETTINGS), folder) as (port, pid):
        url = f"http://{HOST}:{port}"
        yield Server("moto", url, pid, s3_settings(url))


def _arguments(port: int) -> list[str]:
    return [sys.executable, "-m", "harness.servers.moto_app", "-H", HOST, "-p", str(port)]


def user(server: Server, name: str, policy: Mapping[str, Any]) -> Server:
    """Makes a user who may do what the policy says. Returns the server as this user reaches it."""
    iam = client(server, "iam")
    iam.create_user(UserName=name)
    iam.put_user_policy(UserName=name, PolicyName=name, PolicyDocument=json.dumps(policy))
    key = iam.create_access_key(UserName=name)["AccessKey"]
    settings = {**server.settings, **s3_settings(server.url, key["AccessKeyId"], key["SecretAccessKey"])}
    return replace(server, settings=settings)


def enforce(server: Server, *, on: bool = True) -> None:
    """From here on (or until `on=False`) every request needs a user's keys and permission."""
    still_free = b"0" if on else b"1000000000"
    request = Request(f"{server.url}/moto-api/reset-auth", still_free, {"Content-Type": "text/plain"})
    with urlopen(request, timeout=10) as answer:
        answer.read()


def slow_restores(server: Server, seconds: float) -> None:
    """From here on an object of an archive class comes so long after it was asked for, and not at once.

    For all of the server, so it should be the test's own. An object must be as old before it is asked for: moto counts
    a first step from its creation.
    """
    transition = {"progression": "time", "seconds": seconds}
    data = json.dumps({"model_name": "s3::keyrestore", "transition": transition}).encode()
    url = f"{server.url}/moto-api/state-manager/set-transition"
    with urlopen(Request(url, data, {"Content-Type": "application/json"}), timeout=10) as answer:
        answer.read()
