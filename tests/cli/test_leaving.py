"""A command's process ends whole: native threads never meet an interpreter that is being taken apart."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from firnline.journal.parts import as_parquet

LEAVES = """
import atexit, sys
class Late:
    def __del__(self):
        print("taken apart")
late = Late()
sys.argv = ["firnline", *sys.argv[1:]]
from firnline.cli.main import main
module, run = sys.modules["firnline.cli.main"], sys.modules["firnline.cli.main"].run
def meanwhile(arguments):
    atexit.register(lambda: print("last words"))
    return run(arguments)
module.run = meanwhile
main()
"""

READS = """
import os, sys
import pyarrow as pa, pyarrow.parquet
from pathlib import Path
from firnline.journal.parts import read_part
class Store:
    def get(self, key):
        return Path(key).read_bytes()
before = set(os.listdir("/proc/self/task"))
rows = read_part(Store(), sys.argv[1])
print(len(rows), len(set(os.listdir("/proc/self/task")) - before))
"""


def ran(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("arguments", "code"), [(["--version"], 0), (["no-such-command"], 2)])
def test_what_others_registered_runs_and_nothing_is_taken_apart(arguments: list[str], code: int) -> None:
    ended = ran(LEAVES, *arguments)
    assert ended.returncode == code
    assert ended.stdout.endswith("last words\n")
    assert "taken apart" not in ended.stdout


BUSY = """
from concurrent.futures import ThreadPoolExecutor
from threading import Event
def stopped(arguments):
    atexit.register(lambda: print("last words"))
    pool, begun, never = ThreadPoolExecutor(2), Event(), Event()
    def waits_then_asks():
        begun.set()
        never.wait(WAITS)
        pool.submit(print)
    pool.submit(waits_then_asks).add_done_callback(lambda done: print(done.exception(), file=sys.stderr))
    begun.wait()
    return 130
module.run = stopped
main()
"""


@pytest.mark.parametrize("waits", ["60", "0.05"], ids=["a server that hangs", "work that goes on"])
def test_a_command_that_was_stopped_waits_for_none_of_its_threads(waits: str) -> None:
    """Python would, and has no new thread for them by then: each ended in a traceback."""
    begun = time.monotonic()
    ended = ran(LEAVES.replace("main()\n", BUSY.replace("WAITS", waits)))
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "last words\n", "")
    assert time.monotonic() - begun < 30


def test_an_error_that_nobody_caught_still_shows() -> None:
    ended = ran(LEAVES.replace("main()\n", "module.run = None\nmain()\n"))
    assert ended.returncode == 1
    assert "TypeError" in ended.stderr


def test_who_calls_main_with_arguments_goes_on() -> None:
    """As a program does that runs a command inside itself."""
    ended = ran(
        LEAVES.replace("main()\n", "try:\n    main(['--version'])\nexcept SystemExit:\n    pass\nprint('on')\n")
    )
    assert (ended.returncode, ended.stdout.splitlines()[1:]) == (0, ["on", "last words", "taken apart"])


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are counted where /proc shows them")
def test_a_part_of_a_record_is_read_without_threads_of_arrow(tmp_path: Path) -> None:
    """Such a thread may hold the bytes when the program is done with them: one start in eighty aborted by that."""
    import pyarrow as pa

    part = tmp_path / "part.parquet"
    part.write_bytes(as_parquet(pa.table({"key": [str(number) for number in range(1000)], "size": range(1000)})))
    ended = ran(READS, str(part))
    assert ended.stdout.split() == ["1000", "0"], ended.stderr


HURRIED = """
import importlib.abc, os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored in the background
sys.argv = ["/usr/bin/firnline", *sys.argv[1:]]
class Hurry(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == HURRIED_AT:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Hurry())
sys.modules.pop(HURRIED_AT, None)  # it may have been loaded as Python itself started
from firnline.cli import main
main()
"""


def hurried(first: str) -> str:
    """Returns a command that is stopped in the moment in which a part of it is looked for."""
    return HURRIED.replace("HURRIED_AT", repr(first))


@pytest.mark.parametrize("first", ["typer", "firnline.cli", "firnline.arrival", "pathlib"])
def test_ctrl_c_while_its_parts_are_loaded_ends_it_without_a_word(first: str) -> None:
    """From the first of them on: the package's own imports are as good a moment as any other."""
    ended = ran(hurried(first), "--version")
    assert (ended.returncode, ended.stdout, ended.stderr) == (-signal.SIGINT, "", "")


AS_MODULE = """
import importlib.abc, os, runpy, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv, sys.orig_argv = ["-m", "--version"], ["python", "-X", "utf8", *ORIGIN, "--version"]
class Hurry(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "firnline.arrival":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Hurry())
try:
    import firnline
except KeyboardInterrupt:
    print("the program's own")
"""


@pytest.mark.parametrize(
    ("origin", "code", "out"),
    [
        (["-m", "firnline"], -signal.SIGINT, ""),
        (["-mfirnline"], -signal.SIGINT, ""),
        (["-m", "another", "firnline"], 0, "the program's own\n"),
    ],
)
def test_ctrl_c_while_the_module_is_loaded_ends_it_without_a_word(origin: list[str], code: int, out: str) -> None:
    """As `python -m firnline` has it: the package is loaded before its name is among the arguments."""
    ended = ran(AS_MODULE.replace("ORIGIN", repr(origin)))
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, out, "")


def test_where_ctrl_c_is_ignored_it_stays_ignored() -> None:
    ended = ran(hurried("typer").replace("signal.default_int_handler)", "signal.SIG_IGN)"), "--version")
    assert (ended.returncode, ended.stderr) == (0, "")


def test_ctrl_c_is_heard_again_once_a_command_runs() -> None:
    ended = ran(hurried("firnline.lake"), "tables")
    assert (ended.returncode, ended.stderr.strip()) == (130, "interrupted")


@pytest.mark.parametrize("arguments", [["--help"], ["tables"], ["nonsense"], ["--version"], ["expire", "--help"]])
@pytest.mark.parametrize("closed", ["stdout", "both"])
@pytest.mark.sampled(4)
def test_a_reader_that_went_away_gets_no_traceback(tmp_path: Path, arguments: list[str], closed: str) -> None:
    """Output is not buffered, as in many containers: the pipe breaks in the middle of what is written."""
    reader, writer = os.pipe()
    os.close(reader)
    said = tmp_path / "said"
    with said.open("wb") as kept:
        other = writer if closed == "both" else kept
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", "PYICEBERG_HOME": str(tmp_path)}
        script = "import sys; sys.argv[0] = 'firnline'; from firnline.cli import main; main()"
        command = [sys.executable, "-c", script, *arguments]
        ended = subprocess.run(command, stdout=writer, stderr=other, env=environment, cwd=tmp_path, check=False)
    os.close(writer)
    assert "Traceback" not in said.read_text()
    assert ended.returncode in (0, 1, 2)


@pytest.mark.sampled(6)
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device that is always full")
@pytest.mark.parametrize(
    ("stdout", "told"), [(">/dev/full", "No space left on device"), (">&-", "stdout is closed")], ids=str
)
@pytest.mark.parametrize(
    "arguments",
    ["tables", "tables --json", "--version", "--help", "plan -h", "policy show --help", "policy -h", "help runs"],
)
def test_an_answer_that_cannot_be_written_is_one_error(tmp_path: Path, stdout: str, told: str, arguments: str) -> None:
    firnline = Path(sys.executable).with_name("firnline")
    command = ["sh", "-c", f"exec {firnline} {arguments} {stdout}"]
    environment = {**os.environ, "PYICEBERG_HOME": str(tmp_path), "HOME": str(tmp_path)}
    ended = subprocess.run(command, stderr=subprocess.PIPE, text=True, env=environment, cwd=tmp_path, check=False)
    assert ended.returncode == 1
    assert told in ended.stderr
    assert len(ended.stderr.split("\n\n")[0].splitlines()) == 1
    assert "Traceback" not in ended.stderr


def test_a_completion_that_cannot_be_kept_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file, and no folder")
    environment = {**os.environ, "HOME": str(tmp_path / "home"), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    command = [str(Path(sys.executable).with_name("firnline")), "--install-completion", "bash"]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
    assert ended.returncode == 1
    assert "cannot be written: " in ended.stderr
    assert "Traceback" not in ended.stderr


def test_it_is_a_module_that_can_be_run() -> None:
    """Where several Pythons are at hand, `python -m` says which one is meant."""
    ended = subprocess.run([sys.executable, "-m", "firnline", "-h"], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("Usage: firnline [OPTIONS] COMMAND")
