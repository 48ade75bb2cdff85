"""A server that hangs accepts connections and says nothing: an error within half a minute, told while it lasts."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from firnline import answering
from firnline.cli.main import run
from firnline.errors import Unreachable

FIRNLINE = str(Path(sys.executable).with_name("firnline"))
FROZEN_S = 30.0


@pytest.fixture
def frozen() -> Iterator[str]:
    """The address of a server that accepts connections, by its machine alone, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


@pytest.fixture(autouse=True)
def asked_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "_asked", {})


def settings_of(kind: str, frozen: str) -> dict[str, str]:
    if kind == "rest":
        return {"type": "rest", "uri": f"http://{frozen}"}
    keys = {"s3.access-key-id": "some-id", "s3.secret-access-key": "some-secret", "s3.endpoint": f"http://{frozen}"}
    return {"type": "sql", "uri": "sqlite:///lake.db", "warehouse": "s3://bucket/w", **keys}


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("kind", "table"), [("rest", "lake.db.t"), ("s3", "s3://bucket/w/db/t")])
def test_a_command_ends_within_half_a_minute(
    kind: str, table: str, frozen: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".pyiceberg.yaml").write_text(yaml.safe_dump({"catalog": {"lake": settings_of(kind, frozen)}}))
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    done = subprocess.run([FIRNLINE, "plan", table], capture_output=True, text=True, check=False, timeout=3 * FROZEN_S)
    assert done.returncode == 1
    assert "waiting for" in done.stderr
    assert f"http://{frozen} does not answer within" in done.stderr
    assert answering.ANSWERS_WITHIN_S < FROZEN_S - 5


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_silence_is_found_and_remembered_for_a_while(
    scheme: str, frozen: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(answering, "ANSWERS_WITHIN_S", 0.6)
    monkeypatch.setattr(answering, "_IS_TOLD_AFTER_S", 0.2)
    with pytest.raises(Unreachable, match="the server does not answer"):
        answering.refuse_silent(f"{scheme}://{frozen}", "the server")
    assert "waiting for the server" in caplog.text
    began = time.monotonic()
    with pytest.raises(Unreachable):
        answering.refuse_silent(f"{scheme}://{frozen}", "the server")
    assert time.monotonic() - began < 0.3


def test_a_doctor_waits_no_longer_and_says_so(
    frozen: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(answering, "ANSWERS_WITHIN_S", 0.4)
    monkeypatch.setattr(answering, "_IS_TOLD_AFTER_S", 0.1)
    (tmp_path / ".pyiceberg.yaml").write_text(yaml.safe_dump({"catalog": {"lake": settings_of("s3", frozen)}}))
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert run(["doctor", "lake"]) == 1
    assert f"waiting for the store at http://{frozen}, which has not answered yet" in caplog.text
    said = capsys.readouterr().out
    assert f"store of lake  the store at http://{frozen} does not answer within 0.4 s" in said


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:9", "https://127.0.0.1:9", "s3://bucket", "http://", "http://[", "file:///x"]
)
def test_whatever_else_is_wrong_is_left_to_the_client(address: str) -> None:
    answering.refuse_silent(address, "it")
