"""A Spark Connect server that cannot be reached is said so in seconds, whatever keeps it from answering."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from firnline import answering
from firnline.cli.main import run
from firnline.spark import session as reaching

ASK = """
import sys
from firnline.errors import UsageError
from firnline.spark import session as reaching
reaching.ANSWERS_WITHIN_S = 2.0
try:
    reaching.session()
except UsageError as said:
    sys.exit(f"{said.message}\\n{said.hint}")
"""
LONGEST_S = 45
"""What an answer may take with the start of Python and Spark's own imports on a busy machine; Spark's own patience
is a quarter of an hour.
"""


@pytest.fixture
def silent() -> Iterator[int]:
    """A port behind which connections come to stand and nothing ever speaks, as with a server that hangs."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        yield listening.getsockname()[1]


@pytest.fixture
def closed() -> int:
    """A port that nothing listens at: connections are refused."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        return int(listening.getsockname()[1])


def test_a_session_of_a_server_that_never_answers_is_refused_in_seconds(silent: int) -> None:
    assert reaching.ANSWERS_WITHIN_S < LONGEST_S / 2, "what a server gets outside of this test"
    given = {**os.environ, "SPARK_REMOTE": f"sc://127.0.0.1:{silent}"}
    ran = subprocess.run(
        [sys.executable, "-c", ASK], env=given, capture_output=True, text=True, timeout=LONGEST_S, check=False
    )
    said, hint = ran.stderr.strip().splitlines()[-2:]
    assert f"no Spark Connect server answers at 127.0.0.1:{silent}" in said
    assert "SPARK_REMOTE" in hint
    assert 'engine="local"' in hint


@pytest.mark.parametrize("kind", ["silent", "closed"])
def test_what_does_not_answer_is_not_waited_for(
    kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reaching, "ANSWERS_WITHIN_S", 0.5)
    port = request.getfixturevalue(kind)
    with pytest.raises(reaching.UsageError, match=f"answers at 127.0.0.1:{port}"):
        reaching.refuse_unreachable(f"sc://127.0.0.1:{port}")


def test_who_waits_is_told_for_what(
    silent: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(reaching, "ANSWERS_WITHIN_S", 0.3)
    monkeypatch.setattr(answering, "IS_TOLD_AFTER_S", 0.1)
    with pytest.raises(reaching.UsageError):
        reaching.refuse_unreachable(f"sc://127.0.0.1:{silent}/;token=hush")
    assert caplog.messages == [f"waiting for Spark Connect at 127.0.0.1:{silent}, which has not answered yet"]


def test_that_nobody_listens_is_told_at_once(
    closed: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A server that is being restarted refuses connections, so it is waited for, but not without a word."""
    monkeypatch.setattr(reaching, "ANSWERS_WITHIN_S", 0.2)
    with pytest.raises(reaching.UsageError):
        reaching.refuse_unreachable(f"sc://127.0.0.1:{closed}")
    assert caplog.messages == [f"waiting for Spark Connect at 127.0.0.1:{closed}, which accepts no connections yet"]


@pytest.mark.parametrize(("engine", "told"), [("auto", True), ("local", False)])
def test_a_doctor_tells_a_server_that_does_not_answer(
    silent: int,
    engine: str,
    told: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(reaching, "ANSWERS_WITHIN_S", 0.2)
    monkeypatch.setenv("SPARK_REMOTE", f"sc://127.0.0.1:{silent}/;token=hush")
    for name in ("PYICEBERG_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert run(["doctor", "--engine", engine]) == int(told)
    said = capsys.readouterr().out
    assert (f"no Spark Connect server answers at 127.0.0.1:{silent}" in said) is told
    assert "hush" not in said


def test_a_token_is_not_shown(closed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reaching, "ANSWERS_WITHIN_S", 0.2)
    with pytest.raises(reaching.UsageError) as refused:
        reaching.refuse_unreachable(f"sc://127.0.0.1:{closed}/;token=hush")
    assert "hush" not in f"{refused.value.message} {refused.value.hint}"


def test_a_session_that_loses_its_server_gives_up_within_half_a_minute() -> None:
    """The pauses between tries, added up: what Spark itself grants is ten minutes of them."""
    (policy,) = reaching.hasty_policies()
    state, waited_ms = policy.to_state(), 0
    while (pause := state.next_attempt()) is not None:
        waited_ms += pause
    assert 5_000 < waited_ms < 30_000
