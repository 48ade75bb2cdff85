"""`firnline worker`: keeps every table in policy until it is told to stop; `--once` for cron and Airflow."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import ExitStack
from pathlib import Path
from threading import Event, Timer
from types import FrameType
from typing import Annotated

import typer

from firnline.cli.terminal import options
from firnline.cli.terminal.output import output_for

_UNWELL = 3
_GIVEN_S = 25.0
_TERMINATED = 143


def register(app: typer.Typer) -> None:
    app.command("worker")(worker)


def worker(
    once: Annotated[bool, typer.Option("--once", help="One round, then end: for cron and Airflow.")] = False,
    memory: Annotated[
        Path | None, typer.Option("--memory", help="Where it remembers when to look again. Default: your cache folder.")
    ] = None,
    listen: Annotated[
        str | None, typer.Option("--listen", help="Answer /metrics and /healthz here: PORT, or HOST:PORT.")
    ] = None,
    config: options.Config = None,
    engine: options.Engine = "auto",
    as_json: options.Json = False,
) -> int:
    """Go round all tables of the configured catalogs: finish what was begun, expire what is due, search folders.

    It works in the hours and with the share of the stores that `worker:` of firnline.yaml gives it. SIGTERM and Ctrl-C
    stop it at the next batch, within 30 seconds. Exit code 3 if the last round had a problem.
    """
    from firnline.worker.memory import usual_memory
    from firnline.worker.report import RoundReport
    from firnline.worker.working import Worker

    def told(report: RoundReport) -> None:
        output_for(as_json).show(report.page(), report.to_json())
        sys.stdout.flush()

    working = Worker(config, memory or usual_memory(config), told, engine)
    _stop_on_signals(working.stop)
    with ExitStack() as served:
        if listen is not None:
            from firnline.observing.serving import serve

            place = served.enter_context(serve(listen, working.metrics, working.health))
            print(f"http://{place}/metrics", file=sys.stderr)
        return _UNWELL if working.run(once=once) else 0


def _stop_on_signals(stop: Event) -> None:
    """Makes SIGTERM and Ctrl-C end the work at its next batch. One that cannot end in time ends the process all the
    same: whatever it was at, its record says so, and another worker goes on when the lease has run out.
    """

    def ask(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        print("stopping at the next batch", file=sys.stderr)
        last = Timer(_GIVEN_S, _end)
        last.daemon = True
        last.start()

    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, ask)


def _end() -> None:
    print("the batch takes too long: ending now, the next worker goes on", file=sys.stderr)
    sys.stderr.flush()
    os._exit(_TERMINATED)
